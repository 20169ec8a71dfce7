import type { z } from "zod";
import type { ChannelKinds } from "../../../channels/kind.ts";
import { ApiError } from "../../../http/errors.ts";
import type { Shown } from "../../../http/fields.ts";
import { shortListQuery } from "../../../http/page.ts";
import { findNearest } from "../../../lib/nearest.ts";
import type { Presets } from "../../../verify/presets.ts";
import { VERIFICATION_SCHEMES } from "../../../verify/schemes.ts";
import { listOf } from "../../kit/answer.ts";
import { pathText } from "../../kit/params.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute, type Route } from "../../kit/route.ts";
import {
  channelKindSchema,
  presetSchema,
  renderChannelKind,
  renderScheme,
  verificationSchemeSchema,
} from "./schema.ts";

export interface CatalogDeps {
  readonly channelKinds: ChannelKinds;
  readonly presets: Presets;
}

/** Creates a route that lists built-in features of the gateway, such as channel kinds. All callers get the same list. */
function catalog<D, S extends z.ZodType>(
  path: string,
  operation: string,
  summary: string,
  itemSchema: S,
  list: (deps: D) => readonly Shown<z.output<S>>[],
  more: (deps: D) => readonly Route[] = () => [],
): Resource<D> {
  return {
    path,
    tag: "Channels",
    routes(deps) {
      let rendered: readonly object[] | undefined;
      const answer = listOf(itemSchema as unknown as z.ZodType<object>);
      return [
        defineRoute(
          { method: "get", path: "/", operation, summary, query: shortListQuery, answer },
          async ({ query: { limit, offset } }) => {
            // Rendered on the first request, because rendering the schemas at startup would make up a fifth of the API's startup time.
            rendered ??= list(deps) as readonly object[];
            const total = rendered.length;
            return { items: rendered.slice(offset, offset + (limit ?? total)), total };
          },
        ),
        ...more(deps),
      ];
    },
  };
}

export const channelKindCatalog = catalog(
  "/channel-kinds",
  "listChannelKinds",
  "List channel kinds and their settings",
  channelKindSchema,
  ({ channelKinds }: CatalogDeps) => [...channelKinds.values()].map(renderChannelKind),
);

export const verificationSchemeCatalog = catalog(
  "/verification-schemes",
  "listVerificationSchemes",
  "List verification schemes and their settings",
  verificationSchemeSchema,
  () => VERIFICATION_SCHEMES.map(renderScheme),
);

export const presetCatalog = catalog(
  "/presets",
  "listPresets",
  "List the presets of supported providers",
  presetSchema,
  ({ presets }: CatalogDeps) => [...presets.values()],
  ({ presets }) => [
    defineRoute(
      {
        method: "get",
        path: "/:name",
        operation: "getPreset",
        summary: "Get a provider's preset",
        description: "For an unknown name, the 404 response suggests the most similar name.",
        params: { name: pathText(/^/, "preset", "github") },
        answer: presetSchema,
      },
      async ({ params: { name } }) => presets.get(name) ?? throwUnknownPreset(name, presets),
    ),
  ],
);

function throwUnknownPreset(name: string, presets: Presets): never {
  const nearest = findNearest(name.toLowerCase(), [...presets.keys()]);
  const hint = nearest === undefined ? "" : ` Did you mean ${nearest}?`;
  throw new ApiError("not_found", `Preset not found.${hint} \`GET /presets\` lists all presets.`);
}
