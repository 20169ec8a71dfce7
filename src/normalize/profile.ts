import type { CommonSettings } from "../event/channel.ts";
import type { Definition } from "../event/definition.ts";
import type { VerifiedDelivery } from "../event/received.ts";
import type { Result } from "../lib/result.ts";
import type { JsonText } from "./body/payload-slice.ts";
import type { Fault } from "./fault.ts";
import type { DeliveryItems, Item, ItemContext } from "./item.ts";
import type { PathRoot } from "./paths/jsonpath.ts";

/** A root that paths can start from. It provides its value, and the JSON text from which values are cut out. */
export interface RootSource extends PathRoot {
  readonly valueIn: (context: ItemContext) => unknown;
  readonly jsonIn?: (context: ItemContext) => JsonText | undefined;
}

/** Properties of the items in a channel's deliveries. They depend on the channel's settings. */
export interface ItemOptions {
  /** Path of an item's id. It applies to definitions without `idPath`. */
  readonly itemId?: string | undefined;
  /** Path of an item's version. The version is appended to every id that a path yields. */
  readonly versionPath?: string | undefined;
  /** Whether `null` elements are gaps. A gap is not an item, but it counts when the other items are numbered. */
  readonly hasGaps: boolean;
  /** Whether a delivery lists its items from newest to oldest. */
  readonly isNewestFirst: boolean;
}

/**
 * The id of an event, and the text that dedupe remembers. The text is `undefined` if dedupe remembers nothing for the event.
 */
export interface EventId {
  readonly id: string;
  readonly remembered: string | undefined;
}

/** Derives the id of an item from its delivery and its index. Returns `undefined` if the delivery has no id. */
export type NameItem = (
  delivery: VerifiedDelivery,
  item: Pick<Item, "index" | "isBody">,
) => EventId | undefined;

/** Describes how the normalizer reads the deliveries of a channel kind. */
export interface KindProfile {
  /** Roots that paths can start from, by name without the `$`. A plain `$` always refers to the item. */
  readonly roots: ReadonlyMap<string, RootSource>;
  /** Paths that are the same for all definitions. Definitions must not override them. */
  readonly fixedPaths?: Pick<Definition, "typePath" | "idPath" | "payloadPath">;
  /** Reads the items of deliveries that describe their own structure. Channels of such a kind must not set `itemsPath`. */
  readonly readItems?: (delivery: VerifiedDelivery) => Result<DeliveryItems, Fault>;
  /**
   * Returns false for a content type to which the gateway responds with 415. By default, all supported body formats are
   * accepted.
   */
  readonly acceptsContentType?: (contentType: string | undefined) => boolean;
  /** Whether a body is part of a longer text that was already decoded. U+FEFF at its start is then not a byte order mark. */
  readonly bodiesAreParts?: true;
  /** Derives the id of an item if no `idPath` applies. By default, the id consists of the delivery's id and the item's index. */
  readonly ownId?: NameItem;
  /** Returns how to read the items. By default, every element is an item, and items are published in the order of the body. */
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
