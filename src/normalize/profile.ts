import type { ChannelKindName } from "../event/channel.ts";
import type { Definition } from "../event/definition.ts";
import type { VerifiedDelivery } from "../event/received.ts";
import type { Result } from "../lib/result.ts";
import { bodyFormatOf } from "./bodies.ts";
import { acceptsCloudEventType, readCloudEvents } from "./cloudevent-http.ts";
import type { Fault } from "./fault.ts";
import type { DeliveryItems, ItemContext } from "./item.ts";
import type { PathRoot } from "./jsonpath.ts";
import type { JsonText } from "./payload-slice.ts";

/** What a path may start from: its value, and the JSON text that values below it are cut out of. */
export interface RootSource extends PathRoot {
  readonly valueIn: (context: ItemContext) => unknown;
  readonly jsonIn?: (context: ItemContext) => JsonText | undefined;
}

/** What the kind of a channel decides about its rules. */
export interface KindProfile {
  /** The named roots of its paths, without the `$`. `$` alone is the item, everywhere. */
  readonly roots: ReadonlyMap<string, RootSource>;
  /** Paths that all its definitions have and none may set. */
  readonly fixedPaths?: Pick<Definition, "typePath" | "idPath" | "payloadPath">;
  /** Where a delivery says itself what its items are: `itemsPath` cannot be set. */
  readonly readItems?: (delivery: VerifiedDelivery) => Result<DeliveryItems, Fault>;
  /** False for content that cannot be read (415). */
  readonly acceptsContentType: (contentType: string | undefined) => boolean;
}

export const ITEM_ROOT: RootSource = {
  valueIn: ({ item }) => item.value,
  jsonIn: ({ item }) => item.json,
};

export const BODY_ROOT: RootSource = {
  valueIn: ({ body }) => body.value,
  jsonIn: ({ body }) => body.json,
};

const acceptsContentType = (contentType: string | undefined): boolean =>
  bodyFormatOf(contentType) !== undefined;

const webhook: KindProfile = {
  acceptsContentType,
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

/** The profiles of the kinds whose deliveries come through the normalizer. */
export const KIND_PROFILES: ReadonlyMap<ChannelKindName, KindProfile> = new Map([
  ["webhook", webhook],
  ["cloudevents", cloudevents],
]);
