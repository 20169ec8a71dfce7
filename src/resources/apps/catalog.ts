import { z } from "zod";
import { channelKindNameSchema } from "../../channels/entity.ts";
import type { ChannelKind } from "../../channels/kind.ts";
import { ApiError } from "../../http/errors.ts";
import type { Shown } from "../../http/fields.ts";
import { shortListQuery } from "../../http/page.ts";
import { findNearest } from "../../lib/nearest.ts";
import { type Presets, presetSchema as storedPresetSchema } from "../../verify/presets.ts";
import { VERIFICATION_SCHEMES } from "../../verify/schemes.ts";
import type { VerificationScheme } from "../../verify/verifier.ts";
import { listOf } from "../kit/answer.ts";
import { slicePage } from "../kit/list-page.ts";
import { pathText } from "../kit/params.ts";
import type { Resource } from "../kit/resource.ts";
import { defineRoute, type Endpoint, type Route } from "../kit/route.ts";

const settings = z.record(z.string(), z.unknown()).describe("JSON Schema (2020-12) of the settings.");

const channelKindSchema = z
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

const verificationSchemeSchema = z
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

const presetSchema = z
  .object(storedPresetSchema.shape)
  .extend({ verification: z.record(z.string(), z.unknown()).describe("Value for `config.verification`.") })
  .meta({ id: "Preset", description: "Settings for the deliveries of a known provider." });

const renderChannelKind = (kind: ChannelKind): Shown<z.output<typeof channelKindSchema>> => ({
  kind: kind.kind,
  addressed: kind.addressed,
  secretSettings: kind.secretFields,
  settings: toJsonSchema(kind.configSchema, kind.secretFields),
});

const renderScheme = (scheme: VerificationScheme): Shown<z.output<typeof verificationSchemeSchema>> => ({
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

/** Routes that describe built-in features of the gateway. All callers get the same responses. */
export const catalog: Resource = {
  tag: "Channels",
  params: { name: pathText(/^/, "preset", "github") },
  routes: ({ channelKinds, presets }) => [
    listBuiltIn(
      {
        at: "GET /channel-kinds",
        operation: "listChannelKinds",
        summary: "List channel kinds and their settings",
      },
      channelKindSchema,
      () => [...channelKinds.values()].map(renderChannelKind),
    ),
    listBuiltIn(
      {
        at: "GET /verification-schemes",
        operation: "listVerificationSchemes",
        summary: "List verification schemes and their settings",
      },
      verificationSchemeSchema,
      () => VERIFICATION_SCHEMES.map(renderScheme),
    ),
    listBuiltIn(
      { at: "GET /presets", operation: "listPresets", summary: "List the presets of supported providers" },
      presetSchema,
      () => [...presets.values()],
    ),
    defineRoute({
      at: "GET /presets/:name",
      operation: "getPreset",
      summary: "Get a provider's preset",
      description: "For an unknown name, the 404 response suggests the most similar name.",
      answer: presetSchema,
      handle: async ({ params: { name } }) => presets.get(name) ?? throwUnknownPreset(name, presets),
    }),
  ],
};

function listBuiltIn<S extends z.ZodType>(
  named: { readonly at: Endpoint; readonly operation: string; readonly summary: string },
  itemSchema: S,
  list: () => readonly Shown<z.output<S>>[],
): Route {
  let rendered: readonly Shown<z.output<S>>[] | undefined;
  return defineRoute({
    ...named,
    query: shortListQuery,
    answer: listOf(itemSchema),
    async handle({ query }) {
      // Rendered on the first request, because rendering the schemas at startup would make up a fifth of the API's startup time.
      rendered ??= list();
      return slicePage(rendered, query);
    },
  });
}

function throwUnknownPreset(name: string, presets: Presets): never {
  const nearest = findNearest(name.toLowerCase(), [...presets.keys()]);
  const hint = nearest === undefined ? "" : ` Did you mean ${nearest}?`;
  throw new ApiError("not_found", `Preset not found.${hint} \`GET /presets\` lists all presets.`);
}
