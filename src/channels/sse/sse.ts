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
 * Uses the delivery id as the event id (`42`, or `42/2` for the second event under that last event id). The item's index is appended if the
 * frame was split. The server may also send `42/2` as an id, so `remembered` includes the length of the server's part.
 */
const ownId: NameItem = ({ deliveryId, headers }, { index, isBody }) => {
  if (deliveryId === undefined) return undefined;
  const id = isBody ? deliveryId : `${deliveryId}/${index}`;
  return { id, remembered: `${headers["last-event-id"]?.length ?? 0}:${id}` };
};

/** Keeps a connection open to a stream of server-sent events. */
export const sse: ChannelKind = {
  kind: "sse",
  settings: sseSettings,
  secretSettings: [],
  addressed: false,
  // A delivery is one frame. Its event name and last event id are stored as headers.
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

/** The settings of an active channel are already parsed. Parsing them again would create a copy per open stream. */
const settingsOf = (settings: unknown): SseSettings => settings as SseSettings;

/** Maximum number of channels whose server-sent `retry` value is remembered. */
const MAX_RETRIES = 10_000;

/** Lower bound of `retry`. A server that ends every stream and asks for an immediate reconnect would otherwise keep its worker busy. */
const MIN_RETRY_MS = 100;

/**
 * Creates the source of server-sent events. A server's `retry` value stays active until the server sends another one, also across failed
 * attempts. It is capped at `maxMs`, and raised to `MIN_RETRY_MS` unless `initialMs` is lower.
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
