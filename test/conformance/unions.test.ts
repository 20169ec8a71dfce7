import { describe, expect, it } from "vitest";
import { z } from "zod";
import { channelKinds } from "../../src/channels/kinds.ts";
import { findingsOf } from "../../src/lib/findings.ts";
import { connectionInput } from "../../src/resources/apps/connections/schema.ts";
import { subscribeSchema } from "../../src/resources/events/subscriptions/schema.ts";
import { formContent } from "../../src/resources/forms/content.ts";
import { verificationSchema } from "../../src/verify/schemes.ts";
import { createTestApi } from "../support/api.ts";
import { opened } from "../support/opened.ts";

type Union = z.core.$ZodUnion | z.core.$ZodDiscriminatedUnion;

/** Adds all unions inside of a schema, at any depth. */
function collect(part: unknown, seen: Set<unknown>, unions: Set<Union>): void {
  if (typeof part !== "object" || part === null || seen.has(part)) return;
  seen.add(part);
  if (part instanceof z.core.$ZodUnion) unions.add(part);
  const inner = part instanceof z.core.$ZodType ? part._zod.def : part;
  for (const value of Object.values(inner)) collect(value, seen, unions);
}

const unions = new Set<Union>();
const schemas = [
  ...[...channelKinds.values()].map(({ configSchema }) => configSchema),
  connectionInput,
  verificationSchema,
  formContent,
  subscribeSchema,
];
for (const schema of schemas) collect(schema, new Set(), unions);
const discriminated = [...unions].filter((union) => union instanceof z.core.$ZodDiscriminatedUnion);

const messagesOf = (schema: Union, value: unknown): readonly string[] => {
  const { error } = z.safeParse(schema, value);
  if (!error) throw new Error("the value is valid");
  return findingsOf(error as z.ZodError, value).map(({ path, message }) => `${path} ${message}`);
};

describe("every union of the API", () => {
  it("says that a missing discriminator is required, and which values it can have", () => {
    expect(discriminated.length).toBeGreaterThan(8);
    for (const union of discriminated) {
      const { discriminator } = union._zod.def;
      expect(messagesOf(union, {})).toEqual([`${discriminator} is required`]);
      const [wrong] = messagesOf(union, { [discriminator]: "zzzzzzzz" });
      expect(wrong).toMatch(new RegExp(`^${discriminator} must be (one of )?"`));
    }
  });

  it("says which types and values it accepts", () => {
    for (const union of unions) {
      for (const value of [Symbol("other"), { zzzzzzzz: 1 }, 0.5, [[]]]) {
        if (z.safeParse(union, value).success) continue;
        for (const message of messagesOf(union, value))
          expect(message).toMatch(/must|is required|is not a known field/);
      }
    }
  });
});

const api = opened(createTestApi);

describe("a request with a wrong discriminator", () => {
  const channel = { uid: "main", kind: "webhook", config: {}, events: [] };
  const polling = {
    request: { url: "https://api.example.com/" },
    discriminator: { by: "seenSet", path: "$.id" },
  };
  const blueprint = (changes: object) => ({ title: "t", channels: [{ ...channel, ...changes }] });

  it.each<[string, object, string, string]>([
    ["/blueprints", blueprint({ kind: undefined }), "channels[0].kind", "is required"],
    ["/blueprints", blueprint({ kind: "webhok" }), "channels[0].kind", "did you mean webhook?"],
    [
      "/blueprints",
      blueprint({ config: { verification: {} } }),
      "channels[0].config.verification.scheme",
      "is required",
    ],
    [
      "/blueprints",
      blueprint({ config: { verification: { scheme: "hamc" } } }),
      "channels[0].config.verification.scheme",
      "did you mean hmac?",
    ],
    [
      "/blueprints",
      blueprint({ config: { preset: "slcak" } }),
      "channels[0].config.preset",
      "did you mean slack?",
    ],
    [
      "/blueprints",
      blueprint({ kind: "polling", config: { ...polling, discriminator: {} } }),
      "channels[0].config.discriminator.by",
      "is required",
    ],
    [
      "/blueprints",
      blueprint({ kind: "polling", config: { ...polling, discriminator: { by: "seenSte" } } }),
      "channels[0].config.discriminator.by",
      "did you mean seenSet?",
    ],
    ["/connections", { name: "c", config: {}, allowedOrigins: ["https://a.example"] }, "kind", "is required"],
    [
      "/connections",
      { name: "c", kind: "oath2", config: {}, allowedOrigins: ["https://a.example"] },
      "kind",
      "did you mean oauth2?",
    ],
  ])("to %s %# names the field and the allowed values", async (path, body, field, message) => {
    const answer = await api.call("POST", path, body);
    expect(answer.status).toBe(400);
    expect(answer.body.details).toContainEqual({ path: field, message: expect.stringContaining(message) });
  });
});
