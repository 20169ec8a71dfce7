import { expect, it } from "vitest";
import { z } from "zod";
import { findingsOf } from "../../src/lib/findings.ts";

/** Returns the messages for a value, with their paths except at the root. */
function messageOf(schema: z.ZodType, value: unknown): string | undefined {
  const { error } = schema.safeParse(value);
  return (
    error &&
    findingsOf(error, value)
      .map(({ path, message }) => `${path} ${message}`.trim())
      .join("; ")
  );
}

const byKind = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("slack"), a: z.string() }),
  z.strictObject({ kind: z.literal("mail") }),
]);

it.each<[string, z.ZodType, unknown]>([
  ["is required", z.string(), undefined],
  ["is required", z.union([z.string(), z.number()]), undefined],
  ["must be a string", z.string(), 1],
  ["must be an integer", z.int(), 1.5],
  ["must be a string or null", z.string().nullable().or(z.null()), 1],
  ["must be a string or an array", z.union([z.string(), z.array(z.string())]), 1],
  [
    "a must be a string",
    z.union([z.strictObject({ a: z.string() }), z.strictObject({ b: z.string() })]),
    { a: 1 },
  ],
  ["a must be a string", z.union([z.string(), z.strictObject({ a: z.string() })]), { a: 1 }],
  ['must be "all" or an object', z.union([z.literal("all"), z.strictObject({ a: z.string() })]), "none"],
  ["must be a string or an object", z.union([z.string().max(1), z.strictObject({ a: z.string() })]), 1],
  ["must have at most 1 character", z.union([z.string().max(1), z.strictObject({ a: z.string() })]), "ab"],
  ["kind is required", byKind, {}],
  ["kind is required", byKind, { a: "1" }],
  ['kind must be one of "slack", "mail"', byKind, { kind: "other" }],
  ['kind must be one of "slack", "mail"', byKind, { kind: 1 }],
  ['kind must be one of "slack", "mail"; did you mean slack?', byKind, { kind: "slcak" }],
  ["a is required", byKind, { kind: "slack" }],
  ["of[0].kind is required", z.strictObject({ of: z.array(byKind) }), { of: [{}] }],
  ["is required", z.enum(["a", "b"]), undefined],
  ['must be one of "push", "pull"; did you mean push?', z.enum(["push", "pull"]), "pus"],
  ["must have at least 2 characters", z.string().min(2), "a"],
  ["must have at most 1 item", z.array(z.string()).max(1), ["a", "b"]],
  ["must be more than 0", z.number().positive(), 0],
  ["must be at most 9", z.number().max(9), 10],
  ['must be one of "a", "b"', z.enum(["a", "b"]), "c"],
  ['must be "a"', z.literal("a"), "c"],
  ["must be a URL", z.url(), "c"],
  ["must match /^a$/", z.string().regex(/^a$/), "c"],
  ["must be a multiple of 5", z.number().multipleOf(5), 6],
  ["has its own message", z.string({ error: "has its own message" }), 1],
])("a Zod validation issue is formatted as: %s", (message, schema, value) => {
  expect(messageOf(schema, value)).toBe(message);
});
