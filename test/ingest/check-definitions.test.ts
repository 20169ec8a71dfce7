import { describe, expect, it } from "vitest";
import { webhook } from "../../src/channels/webhook/webhook.ts";
import { checkDefinitions } from "../../src/ingest/check-definitions.ts";
import type { JsonSchema } from "../../src/lib/json-schema/compiled-schema.ts";
import { settings } from "../normalize/support.ts";
import { sharedSchemas } from "../support/schemas.ts";

const { signal } = new AbortController();

const check = (...definitions: readonly { readonly when?: JsonSchema; readonly schema?: JsonSchema }[]) =>
  checkDefinitions(
    sharedSchemas(),
    {
      profile: webhook.profile,
      config: settings(),
      definitions: definitions.map((definition, index) => ({ type: `t${index}`, ...definition })),
      organizationId: "org_1",
    },
    signal,
  );

describe("the check of new definitions", () => {
  it.each<[string, JsonSchema, string, RegExp]>([
    ["an invalid schema", { properties: { item: { type: "text" } } }, "/properties/item/type", /./],
    ["a backtracking pattern", { properties: { item: { pattern: "(?=a)a" } } }, "/properties/item", /./],
    ["a schema that is too large", { const: "x".repeat(600_000) }, "", /more than 524288 characters/],
    ["a value that it cannot see", { required: ["action"] }, "", /names "action", .* inside of `item`/],
  ])("rejects a `when` with %s, and names the definition, the place and the fix", async (_, when, at, message) => {
    expect(await check({}, { when })).toMatchObject([
      { path: expect.stringContaining(`events[1].when${at}`), message: expect.stringMatching(message) },
    ]);
  });

  it("checks `when` and `schema` of a definition separately", async () => {
    const findings = await check(
      { when: { type: "x" }, schema: { type: "y" } },
      { when: true, schema: true },
    );
    expect(findings.map(({ path }) => path)).toEqual(["events[0].when/type", "events[0].schema/type"]);
  });
});
