/**
 * Measures the time of the most expensive inputs that the limits allow. Tests check that the work grows at most linearly with the
 * input; this prints the actual time. Ends with a line of JSON, in milliseconds.
 *
 * usage: node test/bench/limits.bench.ts
 */

import { createRateBuckets } from "../../src/lib/rate-buckets.ts";
import { compileLinearRegExp } from "../../src/lib/regexp/linear-regexp.ts";
import { readBody } from "../../src/normalize/body/bodies.ts";
import { normalize } from "../../src/normalize/normalize.ts";
import { deliveryOf, rulesOf } from "../normalize/support.ts";

const ROUNDS = 5;
const TAKES = 300_000;

const figures: Record<string, number> = {};

/** Prints the median of the rounds after a warm-up round. */
function measure(name: string, run: () => unknown): void {
  const rounds = Array.from({ length: ROUNDS + 1 }, () => {
    const startedMs = performance.now();
    run();
    return performance.now() - startedMs;
  }).slice(1);
  const sorted = rounds.sort((a, b) => a - b);
  const median = sorted[Math.floor(ROUNDS / 2)] ?? Number.NaN;
  figures[name] = Number(median.toPrecision(3));
  console.log(
    `${name.padEnd(44)} ${median.toFixed(1)} ms (${sorted[0]?.toFixed(1)} to ${sorted.at(-1)?.toFixed(1)})`,
  );
}

const definitions = Array.from({ length: 1_000 }, (_, index) => ({
  type: `t${index}`,
  typePath: "$headers['x-type']",
  idPath: `$.a${index}.id`,
  payloadPath: `$.a${index}[*].data`,
}));
measure("compile 1,000 definitions", () => rulesOf(definitions));

const costly = rulesOf([{ type: "x", payloadPath: "$.big[?count($..*) > 1]" }], { itemsPath: "$" });
const items = Array.from({ length: 1_000 }, () => ({ big: Array.from({ length: 100 }, () => [1, 2]) }));
const delivery = deliveryOf(items);
const deps = { validatorFor: () => ({ validate: () => undefined }), newEventId: () => "fresh" };
measure("a delivery that exhausts its path budget", () => normalize(costly, delivery, deps));

const documents: readonly (readonly [string, string])[] = [
  ["comments", `${"<!-- x -->".repeat(104_000)}<a/>`],
  ["blanks", `<a${" ".repeat(1_048_000)}/>`],
  ["elements", `<a>${"<b/>".repeat(260_000)}</a>`],
  ["references", `<a>${"&amp;".repeat(200_000)}</a>`],
  ["attributes", `<a ${Array.from({ length: 75_000 }, (_, index) => `x${index}="1"`).join(" ")}/>`],
];
for (const [name, text] of documents) {
  const body = Buffer.from(text);
  measure(`1 MB of XML with only ${name}`, () => readBody(body, "application/xml"));
}
const form = Buffer.from("a&".repeat(500_000));
measure("1 MB of form fields with one name", () => readBody(form, "application/x-www-form-urlencoded"));

const pattern = compileLinearRegExp("^(a+)+$");
const text = `${"a".repeat(100_000)}!`;
measure("^(a+)+$ against 100,000 characters", () => pattern.test(text));

const buckets = createRateBuckets<string>();
const keys = Array.from({ length: 1_000 }, (_, index) => `${index} 192.0.2.${index % 256}`);
measure(`${TAKES.toLocaleString("en")} takes from 1,000 rate buckets`, () => {
  for (let take = 0; take < TAKES; take++) buckets.take(keys[take % keys.length] ?? "", 1e9, take / 1_000);
});

console.log(JSON.stringify(figures));
