import { expect, it } from "vitest";
import { z } from "zod";
import { withoutNulls } from "../../src/http/without-nulls.ts";

const part = z.strictObject({
  limit: z.int().default(1),
  path: z.string().nullable().optional(),
  data: z.unknown().optional(),
});
const schema = z
  .strictObject({
    name: z.string(),
    spaceId: z.string().nullable().optional(),
    page: part.prefault({}),
    parts: z.array(part).optional(),
    either: z
      .union([z.strictObject({ kind: z.literal("a"), n: z.int().optional() }), z.literal("b")])
      .optional(),
    free: z.record(z.string(), z.unknown()).default({}),
  })
  .superRefine(() => {});

it("null in a request body is removed from optional fields, but kept in nullable nested fields and free-form data", () => {
  const nulls = { limit: null, path: null, data: { a: null } };
  const sent = {
    name: null,
    spaceId: null,
    page: nulls,
    parts: [nulls],
    either: { kind: "a", n: null },
    free: { a: null },
    unknown: null,
  };
  const kept = { path: null, data: { a: null } };
  expect(withoutNulls(schema, sent, "body")).toEqual({
    name: null,
    page: kept,
    parts: [kept],
    either: { kind: "a" },
    free: { a: null },
    unknown: null,
  });
  expect(withoutNulls(schema, { page: null, parts: null, either: null, free: null }, "body")).toEqual({});
});

it("null in a patch body is kept, because it deletes a field, but is removed inside lists", () => {
  const sent = { page: { limit: null }, parts: [{ limit: null }], free: null };
  expect(withoutNulls(schema, sent, "patch")).toEqual({ ...sent, parts: [{}] });
});

it("null is also removed from a value that matches no union member, so that validation reports the actual error", () => {
  const sent = { name: "a", either: { kind: "a", n: null, x: 1 } };
  expect(withoutNulls(schema, sent, "body")).toEqual({ name: "a", either: { kind: "a", x: 1 } });
});
