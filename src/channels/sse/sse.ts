import type { NameItem, RootSource } from "../../normalize/profile.ts";
import type { ChannelKind } from "../kind.ts";
import { sseCursorFormat } from "./cursor.ts";
import { sseSettings } from "./settings.ts";
import { createStreamSource } from "./stream-source.ts";

/**
 * The delivery's id (`42`, `42/2` for the second event under that last event id) as it is, with the item's index where the frame
 * was split. `42/2` may also be an id that the sender gave, so what is remembered says where the sender's part ends.
 */
const ownId: NameItem = ({ deliveryId, headers }, { index, isBody }) => {
  if (deliveryId === undefined) return undefined;
  const id = isBody ? deliveryId : `${deliveryId}/${index}`;
  return { id, remembered: `${headers["last-event-id"]?.length ?? 0}:${id}` };
};

/** A connection is kept open to a stream of server-sent events. */
export const sse: ChannelKind = {
  kind: "sse",
  settings: sseSettings,
  secretSettings: [],
  addressed: false,
  // A delivery is a frame: its event name and last event id stand in its headers.
  profile: {
    roots: new Map<string, RootSource>([
      ["event", { valueIn: ({ delivery }) => delivery.headers.event }],
      ["lastEventId", { valueIn: ({ delivery }) => delivery.headers["last-event-id"] }],
    ]),
    ownId,
  },
  cursor: sseCursorFormat,
  originOf: (settings) => new URL(sseSettings.parse(settings).url).origin,
  needsSetup: () => false,
  async start(deps) {
    return { stream: createStreamSource(deps), async [Symbol.asyncDispose]() {} };
  },
};
