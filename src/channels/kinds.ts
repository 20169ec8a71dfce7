import { cloudevents } from "./cloudevents/cloudevents.ts";
import type { ChannelKind, ChannelKinds } from "./kind.ts";
import { polling } from "./polling/polling.ts";
import { sse } from "./sse/sse.ts";
import { webhook } from "./webhook/webhook.ts";

/** To add a kind, create a folder for it and list it here. */
const KINDS: readonly ChannelKind[] = [webhook, cloudevents, sse, polling];

export const channelKinds: ChannelKinds = new Map(KINDS.map((kind) => [kind.kind, kind]));
