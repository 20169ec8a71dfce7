import type { z } from "zod";
import type { ChannelKinds } from "../../../channels/kind.ts";
import type { Shown } from "../../../http/fields.ts";
import { shortListQuery } from "../../../http/page.ts";
import { ApiError } from "../../../http/problem.ts";
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

/** A list of what the gateway has, which is short and the same for all. */
function catalog<D, S extends z.ZodType>(
  path: string,
  operation: string,
  summary: string,
  of: S,
  list: (deps: D) => readonly Shown<z.output<S>>[],
  more: (deps: D) => readonly Route[] = () => [],
): Resource<D> {
  return {
    path,
    tag: "Channels",
    routes(deps) {
      let rendered: readonly object[] | undefined;
      const answer = listOf(of as unknown as z.ZodType<object>);
      return [
        defineRoute(
          { method: "get", path: "/", operation, summary, query: shortListQuery, answer },
          async ({ query: { limit, offset } }) => {
            // When it is first asked for: the schemas of all settings would take a fifth of the API's start.
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

/** The kinds of channels that there are. */
export const channelKindCatalog = catalog(
  "/channel-kinds",
  "listChannelKinds",
  "List the kinds of channels and their settings",
  channelKindSchema,
  ({ channelKinds }: CatalogDeps) => [...channelKinds.values()].map(renderChannelKind),
);

/** The ways to know a sender. */
export const verificationSchemeCatalog = catalog(
  "/verification-schemes",
  "listVerificationSchemes",
  "List the ways to verify deliveries and their settings",
  verificationSchemeSchema,
  () => VERIFICATION_SCHEMES.map(renderScheme),
);

/** The providers that are known. */
export const presetCatalog = catalog(
  "/presets",
  "listPresets",
  "List the providers whose verification is known",
  presetSchema,
  ({ presets }: CatalogDeps) => [...presets.values()],
  ({ presets }) => [
    defineRoute(
      {
        method: "get",
        path: "/:name",
        operation: "getPreset",
        summary: "Get a provider whose verification is known",
        description: "A name that is no preset's gets the nearest one in the message (404).",
        params: { name: pathText(/^/, "preset", "github") },
        answer: presetSchema,
      },
      async ({ params: { name } }) => presets.get(name) ?? notKnown(name, presets),
    ),
  ],
);

function notKnown(name: string, presets: Presets): never {
  const nearest = findNearest(name.toLowerCase(), [...presets.keys()]);
  const hint = nearest === undefined ? "" : ` Did you mean ${nearest}?`;
  throw new ApiError("not_found", `There is no such preset.${hint}`);
}
