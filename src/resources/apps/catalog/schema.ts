import { z } from "zod";
import { channelKindNameSchema } from "../../../channels/entity.ts";
import type { ChannelKind } from "../../../channels/kind.ts";
import type { Shown } from "../../../http/fields.ts";
import { presetSchema as storedPresetSchema } from "../../../verify/presets.ts";
import type { VerificationScheme } from "../../../verify/verifier.ts";

const settings = z
  .record(z.string(), z.unknown())
  .describe("What may be set, as JSON Schema (2020-12): the schema that validates it.");

export const channelKindSchema = z
  .object({
    kind: channelKindNameSchema,
    addressed: z.boolean().describe("true where deliveries come to the channel's address"),
    secretSettings: z.array(z.string()).describe("settings that are written and never answered"),
    settings,
  })
  .meta({
    id: "ChannelKind",
    description: "One way for events to arrive, and the `config` of its channels.",
  });

export const verificationSchemeSchema = z
  .object({
    scheme: z.string(),
    needsSecret: z
      .boolean()
      .describe(
        "true: without a secret nothing verifies; false: none is needed, or the settings say whether",
      ),
    settings,
  })
  .meta({ id: "VerificationScheme", description: "One way to know a sender: `config.verification`." });

export const presetSchema = z
  .object(storedPresetSchema.shape)
  .extend({ verification: z.record(z.string(), z.unknown()).describe("as `config.verification` takes it") })
  .meta({ id: "Preset", description: "How the deliveries of a known provider are verified." });

export const renderChannelKind = (kind: ChannelKind): Shown<z.output<typeof channelKindSchema>> => ({
  kind: kind.kind,
  addressed: kind.addressed,
  secretSettings: kind.secretSettings,
  settings: jsonSchemaOf(kind.settings, kind.secretSettings),
});

export const renderScheme = (
  scheme: VerificationScheme,
): Shown<z.output<typeof verificationSchemeSchema>> => ({
  scheme: scheme.scheme,
  needsSecret: scheme.alwaysNeedsSecret,
  settings: jsonSchemaOf(scheme.settings),
});

/** The schema of a body, with its defaults; the `secret` settings are never answered. */
function jsonSchemaOf(schema: z.ZodType, secret: readonly string[] = []): Record<string, unknown> {
  const whole = z.toJSONSchema(schema, { io: "input" });
  for (const name of secret) {
    const property = whole.properties?.[name];
    if (typeof property === "object") property.writeOnly = true;
  }
  return { ...whole };
}
