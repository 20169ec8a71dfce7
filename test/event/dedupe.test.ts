import { expect, it } from "vitest";
import { getConflictRule, onConflictSchema } from "../../src/event/dedupe.ts";

it("treats an event with a known id and other data as the option says", () => {
  const rules = onConflictSchema.options.map((onConflict) => [onConflict, getConflictRule({ onConflict })]);
  expect(Object.fromEntries(rules)).toEqual({
    quarantine: { identity: "id", conflict: "report" },
    duplicate: { identity: "id", conflict: "duplicate" },
    publish: { identity: "idAndData", conflict: "report" },
  });
});
