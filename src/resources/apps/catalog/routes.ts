import type { ChannelKinds } from "../../../channels/kind.ts";
import { type Listed, type Page, shortListQuery } from "../../../http/page.ts";
import { ApiError } from "../../../http/problem.ts";
import { findNearest } from "../../../lib/nearest.ts";
import type { Presets } from "../../../verify/presets.ts";
import { VERIFICATION_SCHEMES } from "../../../verify/schemes.ts";
import { listOf } from "../../kit/answer.ts";
import { pathText } from "../../kit/params.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
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

const common = { method: "get", path: "/", query: shortListQuery } as const;

/** The kinds of channels that there are. */
export const channelKindCatalog: Resource<CatalogDeps> = {
  path: "/channel-kinds",
  tag: "Channels",
  routes({ channelKinds }) {
    const all = [...channelKinds.values()].map(renderChannelKind);
    const spec = { operation: "listChannelKinds", summary: "List the kinds of channels and their settings" };
    return [
      defineRoute({ ...common, ...spec, answer: listOf(channelKindSchema) }, async ({ query }) =>
        pageOf(all, query),
      ),
    ];
  },
};

/** The ways to know a sender. */
export const verificationSchemeCatalog: Resource<CatalogDeps> = {
  path: "/verification-schemes",
  tag: "Channels",
  routes() {
    const all = VERIFICATION_SCHEMES.map(renderScheme);
    const spec = {
      operation: "listVerificationSchemes",
      summary: "List the ways to verify deliveries and their settings",
    };
    return [
      defineRoute({ ...common, ...spec, answer: listOf(verificationSchemeSchema) }, async ({ query }) =>
        pageOf(all, query),
      ),
    ];
  },
};

/** The providers that are known. */
export const presetCatalog: Resource<CatalogDeps> = {
  path: "/presets",
  tag: "Channels",
  routes({ presets }) {
    const all = [...presets.values()];
    const spec = { operation: "listPresets", summary: "List the providers whose verification is known" };
    return [
      defineRoute({ ...common, ...spec, answer: listOf(presetSchema) }, async ({ query }) =>
        pageOf(all, query),
      ),
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
    ];
  },
};

function notKnown(name: string, presets: Presets): never {
  const nearest = findNearest(name.toLowerCase(), [...presets.keys()]);
  const hint = nearest === undefined ? "" : ` Did you mean ${nearest}?`;
  throw new ApiError("not_found", `There is no such preset.${hint}`);
}

const pageOf = <T>(
  all: readonly T[],
  { limit = all.length, offset }: Pick<Page, "offset"> & { readonly limit?: number | undefined },
): Listed<T> => ({
  items: all.slice(offset, offset + limit),
  total: all.length,
});
