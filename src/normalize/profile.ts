import type { CommonSettings } from "../event/channel.ts";
import type { Definition } from "../event/definition.ts";
import type { VerifiedDelivery } from "../event/received.ts";
import type { Result } from "../lib/result.ts";
import type { JsonText } from "./body/payload-slice.ts";
import type { Fault } from "./fault.ts";
import type { DeliveryItems, Item, ItemContext } from "./item.ts";
import type { PathRoot } from "./paths/jsonpath.ts";

/** The root of a path: its value, and the JSON text that values below it are cut out of. */
export interface RootSource extends PathRoot {
  readonly valueIn: (context: ItemContext) => unknown;
  readonly jsonIn?: (context: ItemContext) => JsonText | undefined;
}

/** How a channel's deliveries hold their items, by its settings. */
export interface ItemOptions {
  /** The path of an item's id, for definitions that have no `idPath`. */
  readonly itemId?: string | undefined;
  /** The path of an item's version, which joins every id that a path yields. */
  readonly versionPath?: string | undefined;
  /** True where `null` stands for an item that is not one of the delivery: it only keeps the others' indexes. */
  readonly hasGaps: boolean;
  /** True where the last item happened first. */
  readonly isNewestFirst: boolean;
}

/** An event's id, and what dedupe goes by: undefined where nothing is remembered. */
export interface EventId {
  readonly id: string;
  readonly remembered: string | undefined;
}

/** Names an item by its delivery and its index there; undefined where the delivery has no id. */
export type NameItem = (
  delivery: VerifiedDelivery,
  item: Pick<Item, "index" | "isBody">,
) => EventId | undefined;

/** How the rules of a channel read its deliveries. Each channel kind brings its own. */
export interface KindProfile {
  /** The named roots of its paths, without the `$`. `$` alone is the item, everywhere. */
  readonly roots: ReadonlyMap<string, RootSource>;
  /** Paths that all its definitions have and none may set. */
  readonly fixedPaths?: Pick<Definition, "typePath" | "idPath" | "payloadPath">;
  /** For deliveries that say themselves what their items are: `itemsPath` cannot be set. */
  readonly readItems?: (delivery: VerifiedDelivery) => Result<DeliveryItems, Fault>;
  /** False for content that cannot be read (415); without it, what no body format is for. */
  readonly acceptsContentType?: (contentType: string | undefined) => boolean;
  /** True where a delivery's body is a part of a text that was decoded as a whole: a byte order mark does not begin it. */
  readonly bodiesAreParts?: true;
  /** Names an item's events where no `idPath` does; without it they are named by the item's index in its delivery. */
  readonly ownId?: NameItem;
  /** Without it each item counts, in the order in which they stand. */
  readonly itemOptions?: (settings: CommonSettings) => ItemOptions;
}

export const ITEM_ROOT: RootSource = {
  valueIn: ({ item }) => item.value,
  jsonIn: ({ item }) => item.json,
};

export const BODY_ROOT: RootSource = {
  valueIn: ({ body }) => body.value,
  jsonIn: ({ body }) => body.json,
};

export const HEADERS_ROOT: RootSource = {
  hasLowerCaseNames: true,
  valueIn: ({ delivery }) => delivery.headers,
};
