import type { z } from "zod";
import { ApiError } from "../../../http/errors.ts";
import type { Shown } from "../../../http/fields.ts";
import { shortListQuery } from "../../../http/page.ts";
import { findNearest } from "../../../lib/nearest.ts";
import type { Presets } from "../../../verify/presets.ts";
import { VERIFICATION_SCHEMES } from "../../../verify/schemes.ts";
import { listOf } from "../../kit/answer.ts";
import { slicePage } from "../../kit/list-page.ts";
import { pathText } from "../../kit/params.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute, type Endpoint, type Route } from "../../kit/route.ts";
import {
  channelKindSchema,
  presetSchema,
  renderChannelKind,
  renderScheme,
  verificationSchemeSchema,
} from "./schema.ts";

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
