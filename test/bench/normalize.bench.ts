/**
 * Compares each optimization of the normalizer with the plain way in the same run. Ends with a line of JSON.
 *
 * usage: node test/bench/normalize.bench.ts
 */
import { createRequire } from "node:module";
import { compile } from "json-p3";
import type { Definition } from "../../src/event/definition.ts";
import { buildTargets } from "../../src/normalize/body/json-scan.ts";
import { JsonText } from "../../src/normalize/body/payload-slice.ts";
import { normalize } from "../../src/normalize/normalize.ts";
import { createSingularPath } from "../../src/normalize/paths/path.ts";
import { deliveryOf, rulesOf } from "../normalize/support.ts";
import { createComparison } from "./compare.ts";

interface Example {
  readonly name: string;
  readonly examples: readonly unknown[];
}

const { compare, ratios } = createComparison();

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
  { label: "1,000", run: () => normalize(thousand, delivery, deps) },
  { label: "1", run: () => normalize(one, delivery, deps) },
);

const path = createSingularPath(["pull_request", "head", "repo", "id"]);
const compiled = compile("$.pull_request.head.repo.id");
compare(
  "accessor against json-p3",
  { label: "accessor", run: () => path.get(json.value) },
  { label: "json-p3", run: () => compiled.query(pullRequest as Parameters<typeof compiled.query>[0]) },
);

for (const name of ["pull_request", "sender"]) {
  const target = buildTargets([[name]]);
  const value = (json.value as Readonly<Record<string, unknown>>)[name];
  compare(
    `slice of ${name} against stringify`,
    { label: "slice", run: () => json.find(target, value)?.text },
    { label: "stringify", run: () => JSON.stringify(value) },
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
    { label: "normalize", run: () => normalize(rules, whole, deps) },
    { label: "JSON.parse", run: () => JSON.parse(whole.body.toString()) },
  );
}

console.log(JSON.stringify(ratios));
