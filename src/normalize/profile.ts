import type { ChannelKindName, CommonSettings } from "../event/channel.ts";
import type { Definition } from "../event/definition.ts";
import { readPolledItemSettings } from "../event/polled-items.ts";
import type { VerifiedDelivery } from "../event/received.ts";
import type { Result } from "../lib/result.ts";
import { acceptsCloudEventType, readCloudEvents } from "./cloudevent-http.ts";
import type { Fault } from "./fault.ts";
import type { DeliveryItems, ItemContext } from "./item.ts";
import type { PathRoot } from "./jsonpath.ts";
import { type NameItem, ofFrame } from "./own-id.ts";
import type { JsonText } from "./payload-slice.ts";

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
  /** Where a delivery says itself what its items are: `itemsPath` cannot be set. */
  readonly readItems?: (delivery: VerifiedDelivery) => Result<DeliveryItems, Fault>;
  /** False for content that cannot be read (415); without it, what no body format is for. */
  readonly acceptsContentType?: (contentType: string | undefined) => boolean;
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

/** Under the names of the specification; the data of an event is its item. */
const cloudevents: KindProfile = {
  roots: new Map<string, RootSource>([
    ["id", { valueIn: ({ item }) => item.event?.id }],
    ["source", { valueIn: ({ item }) => item.event?.source }],
    ["type", { valueIn: ({ item }) => item.event?.type }],
    ...["time", "datacontenttype", "dataschema", "subject"].map((name): [string, RootSource] => [
      name,
      { valueIn: ({ item }) => item.event?.attributes.get(name) },
    ]),
    ["data", ITEM_ROOT],
  ]),
  fixedPaths: { typePath: "$type", idPath: "$id", payloadPath: "$data" },
  readItems: readCloudEvents,
  acceptsContentType: acceptsCloudEventType,
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
  ["cloudevents", cloudevents],
  ["sse", sse],
  ["polling", polling],
]);
