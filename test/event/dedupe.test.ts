import { expect, it } from "vitest";
import { getConflictRule, onConflictSchema } from "../../src/event/dedupe.ts";

it("the setting onConflict decides whether an event with a known id but different data is a duplicate, published or quarantined", () => {
  const rules = onConflictSchema.options.map((onConflict) => [onConflict, getConflictRule({ onConflict })]);
  expect(Object.fromEntries(rules)).toEqual({
    quarantine: { identity: "id", conflict: "report" },
    duplicate: { identity: "id", conflict: "duplicate" },
    publish: { identity: "idAndData", conflict: "report" },
  });
});
