import type { CommonSettings } from "../event/channel.ts";
import type { Definition } from "../event/definition.ts";
import type { VerifiedDelivery } from "../event/received.ts";
import type { Result } from "../lib/result.ts";
import type { JsonText } from "./body/payload-slice.ts";
import type { Fault } from "./fault.ts";
import type { DeliveryItems, Item, ItemContext } from "./item.ts";
import type { PathRoot } from "./paths/jsonpath.ts";

/** A path root with access to its value and to the JSON text that values are cut out of. */
export interface RootSource extends PathRoot {
  readonly valueIn: (context: ItemContext) => unknown;
  readonly jsonIn?: (context: ItemContext) => JsonText | undefined;
}

/** Describes the items of a channel's deliveries, depending on the channel's settings. */
export interface ItemOptions {
  /** Path of an item's id, for definitions without `idPath`. */
  readonly itemId?: string | undefined;
  /** Path of an item's version, which is appended to every id that a path yields. */
  readonly versionPath?: string | undefined;
  /** Whether a `null` element is a gap: not an item, but counted so that the other items keep their indexes. */
  readonly hasGaps: boolean;
  /** Whether the items are ordered from newest to oldest. */
  readonly isNewestFirst: boolean;
}

/** An event's id, and the text that dedupe remembers; `undefined` if dedupe remembers no text for the event. */
export interface EventId {
  readonly id: string;
  readonly remembered: string | undefined;
}

/** Derives an item's id from its delivery and its index; `undefined` if the delivery has no id. */
export type NameItem = (
  delivery: VerifiedDelivery,
  item: Pick<Item, "index" | "isBody">,
) => EventId | undefined;

/** Tells the normalizer how to read the deliveries of a channel kind. */
export interface KindProfile {
  /** Named roots for paths, without the `$`. A plain `$` is always the item. */
  readonly roots: ReadonlyMap<string, RootSource>;
  /** Paths that all definitions share and must not override. */
  readonly fixedPaths?: Pick<Definition, "typePath" | "idPath" | "payloadPath">;
  /** Reads the items of self-describing deliveries. Channels of such a kind must not set `itemsPath`. */
  readonly readItems?: (delivery: VerifiedDelivery) => Result<DeliveryItems, Fault>;
  /** Returns false for content types that get 415. By default, all types with a body format are accepted. */
  readonly acceptsContentType?: (contentType: string | undefined) => boolean;
  /** Whether a body is part of a longer decoded text, so that U+FEFF at its start is not a byte order mark. */
  readonly bodiesAreParts?: true;
  /** Derives an item's id when no `idPath` applies. By default, the id contains the item's index in its delivery. */
  readonly ownId?: NameItem;
  /** By default, every element is an item, in the order of the body. */
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
