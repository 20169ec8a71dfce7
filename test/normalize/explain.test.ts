import { expect, it } from "vitest";
import { explainEach } from "../../src/normalize/explain.ts";
import { deliveryOf, rulesOf } from "./support.ts";

it("explainEach returns results for all 1,000 items, but details for only the first five", async () => {
  const definitions = Array.from({ length: 1_000 }, (_, n) => ({ type: `t${n}`, typePath: "$.t" }));
  const items = Array.from({ length: 1_000 }, () => ({ t: "t1" }));
  const rules = rulesOf(definitions, { itemsPath: "$" });
  const deps = { validatorFor: () => ({ validate: () => undefined }), newEventId: () => "fresh" };
  const explained = await explainEach(rules, deliveryOf(items), deps);
  if (explained.kind !== "each") throw new Error(explained.kind);
  expect(explained.results).toHaveLength(1_000);
  expect([...explained.steps.keys()]).toEqual([0, 1, 2, 3, 4]);
  expect(explained.steps.get(4)).toHaveLength(1_000);
});
