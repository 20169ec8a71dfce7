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

it("removes null from optional body fields, but not from nullable nested fields or free-form data", () => {
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

it("keeps null in a patch, where it deletes a field, but removes it inside lists", () => {
  const sent = { page: { limit: null }, parts: [{ limit: null }], free: null };
  expect(withoutNulls(schema, sent, "patch")).toEqual({ ...sent, parts: [{}] });
});

it("reports the actual error of a value that matches no union member instead of its nulls", () => {
  const sent = { name: "a", either: { kind: "a", n: null, x: 1 } };
  expect(withoutNulls(schema, sent, "body")).toEqual({ name: "a", either: { kind: "a", x: 1 } });
});
