import type { ChannelKindName, CommonSettings } from "../event/channel.ts";
import type { Definition } from "../event/definition.ts";
import { readPolledItemSettings } from "../event/polled-items.ts";
import type { VerifiedDelivery } from "../event/received.ts";
import type { Body } from "./bodies.ts";
import type { PathRoot } from "./jsonpath.ts";
import { type NameItem, ofFrame } from "./own-id.ts";
import type { JsonText } from "./payload-slice.ts";

/** One thing of a delivery that becomes events on its own. */
export interface Item {
  /** Its position in the delivery, from 0. */
  readonly index: number;
  /** What paths see of it. */
  readonly value: unknown;
  /** Where it stands as JSON, from which payloads are cut. */
  readonly json: JsonText | undefined;
  /** True where the delivery was not split: the item is the whole body, which is published as it came. */
  readonly isBody: boolean;
}

/** All that the paths of one item may read. */
export interface ItemContext {
  readonly delivery: VerifiedDelivery;
  readonly body: Body;
  readonly item: Item;
}

/** What a path may start from: its value, and the JSON text that values below it are cut out of. */
export interface RootSource extends PathRoot {
  readonly valueIn: (context: ItemContext) => unknown;
  readonly jsonIn?: (context: ItemContext) => JsonText | undefined;
}

/** How the items of a channel's deliveries are taken, by its settings. */
export interface ItemTaking {
  /** The path of an item's id, for definitions that have no `idPath`. */
  readonly itemId?: string | undefined;
  /** The path of what joins every id that a path yields. */
  readonly versionPath?: string | undefined;
  /** True where `null` stands for an item that is not one of the delivery: it only keeps the others' places. */
  readonly hasGaps: boolean;
  /** True where the last item happened first. */
  readonly isNewestFirst: boolean;
}

/** What the kind of a channel decides about its rules. */
export interface KindProfile {
  /** The named roots of its paths, without the `$`. `$` alone is the item, everywhere. */
  readonly roots: ReadonlyMap<string, RootSource>;
  /** Paths that all its definitions have and none may set. */
  readonly fixedPaths?: Pick<Definition, "typePath" | "idPath" | "payloadPath">;
  /** Names an item's events where no `idPath` does; without it they are named by the item's place in its delivery. */
  readonly ownId?: NameItem;
  /** Without it items are taken as they stand, and named by their delivery. */
  readonly taking?: (settings: CommonSettings) => ItemTaking;
}

export const ITEM_ROOT: RootSource = {
  valueIn: ({ item }) => item.value,
  jsonIn: ({ item }) => item.json,
};

export const BODY_ROOT: RootSource = {
  valueIn: ({ body }) => body.value,
  jsonIn: ({ body }) => body.json,
};

const webhook: KindProfile = {
  roots: new Map([
    ["headers", { hasLowerCaseNames: true, valueIn: ({ delivery }) => delivery.headers }],
    ["query", { valueIn: ({ delivery }) => delivery.query }],
    ["body", BODY_ROOT],
  ]),
};

/** Its deliveries are frames, whose event name and last event id stand in their headers. */
const sse: KindProfile = {
  roots: new Map([
    ["event", { valueIn: ({ delivery }) => delivery.headers.event }],
    ["lastEventId", { valueIn: ({ delivery }) => delivery.headers["last-event-id"] }],
  ]),
  ownId: ofFrame,
};

/**
 * Its deliveries are pages as they came, but for the items that are not new: `null` stands in their place. So paths, and whoever
 * reads a quarantine record, find the page around an item, each item where it stood, and of known ones nothing is kept twice.
 */
const polling: KindProfile = {
  roots: new Map([
    ["headers", { hasLowerCaseNames: true, valueIn: ({ delivery }) => delivery.headers }],
    ["body", BODY_ROOT],
  ]),
  taking: (settings) => {
    const { itemId, order, versionPath } = readPolledItemSettings(settings);
    return { itemId, versionPath, hasGaps: true, isNewestFirst: order === "descending" };
  },
};

/** The profiles of the kinds whose deliveries come through the normalizer. */
export const KIND_PROFILES: ReadonlyMap<ChannelKindName, KindProfile> = new Map([
  ["webhook", webhook],
  ["sse", sse],
  ["polling", polling],
]);
