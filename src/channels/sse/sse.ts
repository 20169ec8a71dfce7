import { LRUCache } from "lru-cache";
import { upToEntries } from "../../lib/up-to-entries.ts";
import type { NameItem, RootSource } from "../../normalize/profile.ts";
import type { ChannelKind } from "../kind.ts";
import type { StreamSource } from "../source.ts";
import { getStoredSettings } from "../stored-settings.ts";
import { sseCursorFormat } from "./cursor.ts";
import type { OpenStreamDeps } from "./open-stream.ts";
import { runConnection } from "./run-connection.ts";
import { type SseSettings, sseSettings } from "./settings.ts";

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
    bodiesAreParts: true,
  },
  cursor: sseCursorFormat,
  originOf: (settings) => new URL(getStoredSettings(sseSettings, settings).url).origin,
  needsSetup: () => false,
  async start(deps) {
    return { stream: createStreamSource(deps), async [Symbol.asyncDispose]() {} };
  },
};

/** Of a channel in force: as the schema gave them. To read them anew would make a copy for each open stream. */
const settingsOf = (settings: unknown): SseSettings => settings as SseSettings;

/** Channels whose server has said how long to wait before its stream is opened again. */
const MAX_RETRIES = 10_000;

/** A server that ends each stream and wants it back at once would keep its worker busy with nothing else. */
const MIN_RETRY_MS = 100;

/**
 * Streams of server-sent events. What a server's `retry` says counts until it says otherwise, also over failed tries: no more than
 * `maxMs`, and no less than `MIN_RETRY_MS` where `initialMs` is not less itself.
 */
export function createStreamSource(deps: OpenStreamDeps): StreamSource {
  const retries = new LRUCache<number, number>(upToEntries(MAX_RETRIES));
  return {
    reconnect: (settings) => settingsOf(settings).reconnect,
    async runConnection(run) {
      const { number } = run.channel.identity;
      const settings = settingsOf(run.settings);
      const end = await runConnection(deps, run, settings, (ms) => retries.set(number, ms));
      const retryMs = retries.get(number);
      if (retryMs === undefined || (end.kind !== "done" && end.kind !== "failed")) return end;
      if (end.notBeforeMs !== undefined) return end;
      const { initialMs, maxMs } = settings.reconnect;
      const leastMs = Math.min(MIN_RETRY_MS, initialMs);
      return { ...end, notBeforeMs: deps.clock() + Math.min(Math.max(retryMs, leastMs), maxMs) };
    },
  };
}
