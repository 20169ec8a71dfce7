/**
 * The shortcuts of the normalizer, each compared with the plain way in the same run:
 * `node test/bench/normalize.bench.ts`. Ends with a line of JSON.
 */
import { createRequire } from "node:module";
import { compile } from "json-p3";
import type { Definition } from "../../src/event/definition.ts";
import { targetsOf } from "../../src/normalize/body/json-scan.ts";
import { JsonText } from "../../src/normalize/body/payload-slice.ts";
import { normalize } from "../../src/normalize/normalize.ts";
import { createSingularPath } from "../../src/normalize/paths/path.ts";
import { deliveryOf, rulesOf } from "../normalize/support.ts";

const ROUNDS = 5;
const ROUND_MS = 150;

interface Example {
  readonly name: string;
  readonly examples: readonly unknown[];
}

/** Median of the rounds, in µs a call, after one round that warms up. */
function measure(run: () => unknown): number {
  const rounds = Array.from({ length: ROUNDS + 1 }, () => {
    const startedMs = performance.now();
    let calls = 0;
    for (; performance.now() - startedMs < ROUND_MS; calls += 16) for (let i = 0; i < 16; i++) run();
    return ((performance.now() - startedMs) * 1_000) / calls;
  });
  return rounds.slice(1).sort((a, b) => a - b)[Math.floor(ROUNDS / 2)] ?? Number.NaN;
}

const figures: Record<string, number> = {};

function compare(
  name: string,
  ours: () => unknown,
  plain: () => unknown,
  labels: readonly [string, string],
): void {
  const [oursUs, plainUs] = [measure(ours), measure(plain)];
  const ratio = plainUs / oursUs;
  figures[name] = Number(ratio.toPrecision(3));
  const text = `${labels[0]} ${oursUs.toFixed(3)} µs, ${labels[1]} ${plainUs.toFixed(3)} µs, ratio ${ratio.toPrecision(3)}`;
  console.log(`${name.padEnd(34)} ${text}`);
}

const examples = createRequire(import.meta.url)("@octokit/webhooks-examples") as readonly Example[];
const pullRequest = examples.find(({ name }) => name === "pull_request")?.examples[0];
const text = JSON.stringify(pullRequest);
const json = JsonText.parse(text);
const small = JSON.stringify({ id: "x1", type: "t500", data: { text: "x".repeat(420) } });

const deps = { validatorFor: () => ({ validate: () => undefined }), newEventId: () => "fresh" };
const definition = (type: string): Definition => ({ type, typePath: "$.type", idPath: "$.id" });
const one = rulesOf([definition("t500")]);
const thousand = rulesOf(Array.from({ length: 1_000 }, (_, index) => definition(`t${index}`)));
const delivery = deliveryOf(small, { headers: { "content-type": "application/json" } });

compare(
  "1,000 definitions against 1",
  () => normalize(thousand, delivery, deps),
  () => normalize(one, delivery, deps),
  ["1,000", "1"],
);

const path = createSingularPath(["pull_request", "head", "repo", "id"]);
const compiled = compile("$.pull_request.head.repo.id");
compare(
  "accessor against json-p3",
  () => path.get(json.value),
  () => compiled.query(pullRequest as Parameters<typeof compiled.query>[0]),
  ["accessor", "json-p3"],
);

for (const name of ["pull_request", "sender"]) {
  const target = targetsOf([[name]]);
  const value = (json.value as Readonly<Record<string, unknown>>)[name];
  compare(
    `slice of ${name} against stringify`,
    () => json.find(target, value)?.text,
    () => JSON.stringify(value),
    ["slice", "stringify"],
  );
}

for (const [name, body] of [
  ["small", small],
  ["pull_request", text],
] as const) {
  const rules = rulesOf([{ type: "any", idPath: "$headers['x-id']" }]);
  const whole = deliveryOf(body, { headers: { "x-id": "abc" } });
  compare(
    `${name} (${body.length} B) against JSON.parse`,
    () => normalize(rules, whole, deps),
    () => JSON.parse(whole.body.toString()),
    ["normalize", "JSON.parse"],
  );
}

console.log(JSON.stringify(figures));
