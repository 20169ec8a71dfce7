import { expect, it } from "vitest";
import { z } from "zod";
import { issueMessage } from "../../src/lib/issue-message.ts";

const messageOf = (schema: z.ZodType, value: unknown): string | undefined =>
  schema.safeParse(value).error?.issues.map(issueMessage).join("; ");

it.each<[string, z.ZodType, unknown]>([
  ["is required", z.string(), undefined],
  ["is required", z.union([z.string(), z.number()]), undefined],
  ["must be a string", z.string(), 1],
  ["must be an integer", z.int(), 1.5],
  ["must be a string or null", z.string().nullable().or(z.null()), 1],
  ["must be a string or an array", z.union([z.string(), z.array(z.string())]), 1],
  [
    "matches none of the allowed forms",
    z.union([z.strictObject({ a: z.string() }), z.strictObject({ b: z.string() })]),
    { c: 1 },
  ],
  ["must have at least 2 characters", z.string().min(2), "a"],
  ["must have at most 1 items", z.array(z.string()).max(1), ["a", "b"]],
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
