import { describe, expect, it } from "vitest";
import { cloudevents } from "../../src/channels/cloudevents/cloudevents.ts";
import { compileDefinitions } from "../../src/normalize/compile.ts";
import { fieldOf, normalizeBody, settings } from "./support.ts";

const definitions = [
  { type: "e", idPath: "$.id", timePath: "$.at", subjectPath: "$.about", keyPath: "$.customer" },
];
const RECEIVED_AT = "2026-01-02T03:04:05.006Z";

function read(item: object) {
  const { events, failures } = normalizeBody({ id: "1", customer: "c", ...item }, { definitions });
  expect(failures).toEqual([]);
  const [event] = events;
  return { time: fieldOf(event, "time"), subject: fieldOf(event, "subject"), unset: event?.unset ?? [] };
}

function readKey(item: object) {
  const [event] = normalizeBody({ id: "1", at: 0, about: "x", ...item }, { definitions }).events;
  return { key: fieldOf(event, "partitionkey"), unset: event?.unset };
}

describe("the time that a definition reads from an item", () => {
  it.each([
    ["2025-12-31T23:00:00-02:00", "2026-01-01T01:00:00.000Z"],
    ["2025-12-31", "2025-12-31T00:00:00.000Z"],
    ["Wed, 31 Dec 2025 23:00:00 GMT", "2025-12-31T23:00:00.000Z"],
    [1767225600, "2026-01-01T00:00:00.000Z"],
    ["1767225600.25", "2026-01-01T00:00:00.250Z"],
    [1767225600123, "2026-01-01T00:00:00.123Z"],
    [0, "1970-01-01T00:00:00.000Z"],
  ])("may be %s", (at, time) => {
    expect(read({ at, about: "x" })).toEqual({ time, subject: "x", unset: [] });
  });

  it.each([
    ["yesterday"],
    [""],
    [null],
    [{}],
    [["2025-12-31"]],
    [8.64e15],
    ["-100000-01-01T00:00:00Z"],
    [undefined],
  ])("is the time of receipt if it is %j", (at) => {
    expect(read({ at, about: "x" })).toEqual({ time: RECEIVED_AT, subject: "x", unset: ["time"] });
  });
});

describe("the subject that a definition reads from an item", () => {
  it.each([
    ["orders/7", "orders/7"],
    [7, "7"],
    [true, "true"],
    ["a".repeat(512), "a".repeat(512)],
  ])("may be %j", (about, subject) => {
    expect(read({ at: 0, about })).toMatchObject({ subject, unset: [] });
  });

  it.each([
    [""],
    [null],
    [["a"]],
    ["a\nb"],
    ["\ud800"],
    ["a".repeat(513)],
    [undefined],
  ])("is absent if it is %j", (about) => {
    expect(read({ at: 0, about })).toMatchObject({ subject: undefined, unset: ["subject"] });
  });

  it("does not change which events are duplicates", () => {
    const [identities] = [
      [1, 2].map((at) => normalizeBody({ id: "1", at }, { definitions }).events[0]?.identity),
    ];
    expect(new Set(identities).size).toBe(1);
  });
});

describe("the key that a definition reads from an item", () => {
  it.each([
    ["customer 7", "customer 7"],
    [7, "7"],
    [false, "false"],
    ["a".repeat(512), "a".repeat(512)],
  ])("may be %j", (customer, key) => {
    expect(readKey({ customer })).toEqual({ key, unset: undefined });
  });

  it.each([
    [""],
    [null],
    [{}],
    [["a"]],
    ["a\u0000"],
    ["a".repeat(513)],
    [undefined],
  ])("is absent if it is %j", (customer) => {
    expect(readKey({ customer })).toEqual({ key: undefined, unset: ["partitionkey"] });
  });

  it("is the last attribute of the entry, as the extensions of a sender are", () => {
    const [event] = normalizeBody({ id: "1", at: 0, about: "x", customer: 7 }, { definitions }).events;
    expect(event?.fields.slice(-4)).toEqual(["subject", "x", "partitionkey", "7"]);
  });
});

it("definitions of CloudEvents channels cannot set time, subject or key, which the sender's event has", () => {
  const compiled = compileDefinitions({
    profile: cloudevents.profile,
    config: settings(),
    definitions: [{ type: "e", timePath: "$.at", subjectPath: "$.about", keyPath: "$.customer" }],
  });
  expect(compiled).toMatchObject({
    ok: false,
    error: ["timePath", "subjectPath", "keyPath"].map((name) => ({ path: `events[0].${name}` })),
  });
});
