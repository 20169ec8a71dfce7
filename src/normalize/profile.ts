import type { ChannelConfig } from "../event/channel.ts";
import type { Definition } from "../event/definition.ts";
import type { VerifiedDelivery } from "../event/received.ts";
import type { Result } from "../lib/result.ts";
import type { JsonText } from "./body/payload-slice.ts";
import type { Fault } from "./fault.ts";
import type { DeliveryItems, Item, ItemContext } from "./item.ts";
import type { PathRoot } from "./paths/jsonpath.ts";

/** A value at which paths can start, with the JSON text from which the selected values are cut. */
export interface RootSource extends PathRoot {
  readonly valueIn: (context: ItemContext) => unknown;
  readonly jsonIn?: (context: ItemContext) => JsonText | undefined;
}

/** Options for reading the items of a channel's deliveries, derived from the channel's config. */
export interface ItemOptions {
  /** Path of an item's id, for event definitions without an `idPath` of their own. */
  readonly itemId?: string | undefined;
  /** Path of an item's version. The version is appended to every id that a path yields. */
  readonly versionPath?: string | undefined;
  /** Whether `null` elements are skipped. Skipped elements are not published, but count in the indexes of the items after them. */
  readonly hasGaps: boolean;
  /** Whether the items of a delivery are ordered from newest to oldest. */
  readonly isNewestFirst: boolean;
}

/**
 * An event's id, and the text by which duplicates are detected. The text is `undefined` if duplicates of the event are not
 * detected.
 */
export interface EventId {
  readonly id: string;
  readonly remembered: string | undefined;
}

/** Derives the id of an item from the delivery and the item's index. Returns `undefined` if the delivery has no id. */
export type NameItem = (
  delivery: VerifiedDelivery,
  item: Pick<Item, "index" | "isBody">,
) => EventId | undefined;

export interface KindProfile {
  /** Values at which paths can start, keyed by name without the `$`. A plain `$` always means the item. */
  readonly roots: ReadonlyMap<string, RootSource>;
  /** Paths that apply to all event definitions, which the definitions cannot override. */
  readonly fixedPaths?: Pick<Definition, "typePath" | "idPath" | "payloadPath">;
  /** Reads the items of a delivery whose format defines its own structure. Channels of such a kind must not set `itemsPath`. */
  readonly readItems?: (delivery: VerifiedDelivery) => Result<DeliveryItems, Fault>;
  /** Returns false for a content type that the gateway rejects with status 415. By default, all supported body formats are accepted. */
  readonly acceptsContentType?: (contentType: string | undefined) => boolean;
  /**
   * Whether bodies were cut out of a longer text that is already decoded. A leading U+FEFF is then content, not a byte order mark.
   */
  readonly bodiesAreParts?: true;
  /** Whether the setting `methods` applies, so that the query is the content of GET and DELETE deliveries. */
  readonly takesMethods?: true;
  /** Whether deliveries may be heartbeats, which are often texts in another format than the events. */
  readonly hasHeartbeats?: true;
  /** Derives an item's id if no `idPath` applies. By default, the id consists of the delivery id and the item's index. */
  readonly ownId?: NameItem;
  /**
   * Returns the options for reading items. By default, every element is an item, and items are published in the order of the body.
   */
  readonly itemOptions?: (config: ChannelConfig) => ItemOptions;
}

export const ITEM_ROOT: RootSource = {
  valueIn: ({ item }) => item.value,
  jsonIn: ({ item }) => item.json,
};

export const BODY_ROOT: RootSource = {
  valueIn: ({ body }) => body.value,
  jsonIn: ({ body }) => body.json,
};

export const QUERY_ROOT: RootSource = { valueIn: ({ delivery }) => delivery.query };

export const HEADERS_ROOT: RootSource = {
  hasLowerCaseNames: true,
  valueIn: ({ delivery }) => delivery.headers,
};
