import { describe, expect, it } from "vitest";
import { changedFields } from "../../../src/lib/json/changed-fields.ts";

describe("changedFields", () => {
  it.each([
    ["nothing", { a: 1, b: [1] }, { b: [1], a: 1 }, []],
    ["added, removed and changed fields", { a: 1, b: 2, c: 3 }, { b: 3, c: 3, d: 4 }, ["a", "b", "d"]],
    [
      "fields one level down",
      { config: { x: { deep: 1 }, y: 1 } },
      { config: { x: { deep: 2 }, y: 1 } },
      ["config.x"],
    ],
    ["an array as a whole", { events: [{ type: "a" }] }, { events: [{ type: "b" }] }, ["events"]],
    ["an object that was null", { config: null }, { config: { x: 1 } }, ["config"]],
    ["no field that is undefined", { a: undefined }, {}, []],
    ["no field for equal times", { at: new Date(1) }, { at: new Date(1) }, []],
  ])("returns the names of changed fields: %s", (_, before, after, fields) => {
    expect(changedFields(before, after)).toEqual(fields);
  });

  it("treats a member named __proto__ like every other member", () => {
    const before = JSON.parse('{"__proto__": 1}') as Record<string, unknown>;
    expect(changedFields(before, {})).toEqual(["__proto__"]);
  });
});
