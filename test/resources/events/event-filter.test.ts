import { describe, expect, it } from "vitest";
import { createEventFilter, createTextCheck } from "../../../src/resources/events/events/event-filter.ts";

const matches = (data: string | undefined, path: string, value?: string): boolean | undefined =>
  createEventFilter({ id: undefined, path, value })?.({
    entryId: "1-0",
    fields: data === undefined ? {} : { data },
  });

describe("the filter by a field of the data", () => {
  it.each([
    ["0", "-0"],
    ["0", "-0.0"],
    ["12", "12"],
    ["100", "1e2"],
    ["100", "1E+2"],
    ["100", "100.0"],
    ["-100", "-1e2"],
    ["0.1", "1e-1"],
    ["1e-7", "0.0000001"],
    ["1e+21", "1000000000000000000000"],
    ["10000000000000000", "10000000000000001"],
    ["Infinity", "1e999"],
    ["Infinity", "9".repeat(400)],
    ["true", "true"],
    ["true", '"tr\\u0075e"'],
    ["null", "null"],
    ["", '""'],
    ["12", '"12"'],
    ["a/b", '"a/b"'],
    ["a/b", '"a\\/b"'],
    ['say "hi"', '"say \\"hi\\""'],
    ["line\nbreak", '"line\\nbreak"'],
    ["Zoë", '"Zoë"'],
    ["Zoë", '"Zo\\u00eb"'],
    ["back\\slash", '"back\\\\slash"'],
  ])("finds the value %j if the data has %s", (value, json) => {
    expect(matches(json, "$", value)).toBe(true);
    expect(matches(`{"a":${json}}`, "$.a", value)).toBe(true);
    expect(matches(`{ "x" : 1, "a" : [ ${json}\n] }`, "$.a[0]", value)).toBe(true);
    expect(matches(`{"\\u0061":[${json},0]}`, "$['a'][0]", value)).toBe(true);
    expect(matches(`{"a/b":${json}}`, "$['a/b']", value)).toBe(true);
    expect(matches(`{"a\\/b":${json}}`, "$['a/b']", value)).toBe(true);
  });

  it.each([
    ["12", "13"],
    ["12", "112"],
    ["12", "12.5"],
    ["12", '"12 "'],
    ["true", '"true or false"'],
    ["Ada", '"Ada Lovelace"'],
    ["Ada", '"ada"'],
    ["1", "true"],
    ["{}", "{}"],
    ["1", "1]"],
  ])("does not find the value %j if the data has %s", (value, json) => {
    expect(matches(`{"a":${json}}`, "$.a", value)).toBe(false);
  });

  it("finds any value, also null, if the filter has no value", () => {
    for (const json of ["null", "{}", "[]", "0", '""']) expect(matches(`{"a":${json}}`, "$.a")).toBe(true);
    expect(matches('{"b":"a"}', "$.a")).toBe(false);
    expect(matches(undefined, "$.a")).toBe(false);
  });

  it("does not parse data that cannot have the value", () => {
    const mayMatch = createTextCheck(["order", "total"], "-1");
    expect(mayMatch('{"order":{"id":"order-12","total":12,"at":"2026-01-01T00:00:00.000Z"}}')).toBe(false);
    expect(mayMatch('{"items":{"total":-1}}')).toBe(false);
    expect(mayMatch('{"order":{"total":-1}}')).toBe(true);
    expect(mayMatch('{"order":"total","total":"-1"}')).toBe(true);
  });
});
