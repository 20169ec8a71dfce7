import type { ChannelKindName } from "../event/channel.ts";
import { cloudevents } from "./cloudevents/cloudevents.ts";
import type { ChannelKind } from "./kind.ts";
import { polling } from "./polling/polling.ts";
import { sse } from "./sse/sse.ts";
import { webhook } from "./webhook/webhook.ts";

/** All channel kinds; a new one is its folder and its line here. */
export const CHANNEL_KIND_LIST: readonly ChannelKind[] = [webhook, cloudevents, sse, polling];

export const channelKinds: ReadonlyMap<ChannelKindName, ChannelKind> = new Map(
  CHANNEL_KIND_LIST.map((kind) => [kind.kind, kind]),
);
