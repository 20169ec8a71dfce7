import { z } from "zod";
import { channelKindNameSchema } from "../../../channels/entity.ts";
import type { ChannelKind } from "../../../channels/kind.ts";
import type { Shown } from "../../../http/fields.ts";
import { presetSchema as storedPresetSchema } from "../../../verify/presets.ts";
import type { VerificationScheme } from "../../../verify/verifier.ts";

const settings = z.record(z.string(), z.unknown()).describe("JSON Schema (2020-12) of the settings.");

export const channelKindSchema = z
  .object({
    kind: channelKindNameSchema,
    addressed: z
      .boolean()
      .describe("Whether senders post to the channel's address. If false, the channel fetches its events."),
    secretSettings: z.array(z.string()).describe("Settings that can be written but are never returned."),
    settings,
  })
  .meta({
    id: "ChannelKind",
    description: "A kind of channel, with the schema of its `config`.",
  });

export const verificationSchemeSchema = z
  .object({
    scheme: z.string(),
    needsSecret: z
      .boolean()
      .describe(
        "Whether a secret is always required. If false, the settings determine whether one is required.",
      ),
    settings,
  })
  .meta({
    id: "VerificationScheme",
    description: "A way to verify the sender of a delivery, with the schema of `config.verification`.",
  });

export const presetSchema = z
  .object(storedPresetSchema.shape)
  .extend({ verification: z.record(z.string(), z.unknown()).describe("Value for `config.verification`.") })
  .meta({ id: "Preset", description: "Settings for the deliveries of a known provider." });

export const renderChannelKind = (kind: ChannelKind): Shown<z.output<typeof channelKindSchema>> => ({
  kind: kind.kind,
  addressed: kind.addressed,
  secretSettings: kind.secretFields,
  settings: toJsonSchema(kind.configSchema, kind.secretFields),
});

export const renderScheme = (
  scheme: VerificationScheme,
): Shown<z.output<typeof verificationSchemeSchema>> => ({
  scheme: scheme.scheme,
  needsSecret: scheme.alwaysNeedsSecret,
  settings: toJsonSchema(scheme.configSchema),
});

/** Converts a Zod schema to a JSON Schema for its input. Marks the properties listed in `secret` as write-only. */
function toJsonSchema(schema: z.ZodType, secret: readonly string[] = []): Record<string, unknown> {
  const whole = z.toJSONSchema(schema, { io: "input" });
  for (const name of secret) {
    const property = whole.properties?.[name];
    if (typeof property === "object") property.writeOnly = true;
  }
  return { ...whole };
}
