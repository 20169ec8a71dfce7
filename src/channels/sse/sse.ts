import { LRUCache } from "lru-cache";
import { getStoredConfig } from "../../lib/stored-config.ts";
import { upToEntries } from "../../lib/up-to-entries.ts";
import type { NameItem, RootSource } from "../../normalize/profile.ts";
import type { ChannelKind } from "../kind.ts";
import type { StreamSource } from "../source.ts";
import { type SseConfig, sseConfigSchema } from "./config.ts";
import { sseCursorFormat } from "./cursor.ts";
import type { OpenStreamDeps } from "./open-stream.ts";
import { runConnection } from "./run-connection.ts";

/**
 * Uses the delivery id as the event id: `42`, or `42/2` for the second event with that last event id. If the frame was split into items,
 * the item's index is appended. A server may itself send `42/2` as an id, so `remembered` also includes the length of the server's part.
 */
const ownId: NameItem = ({ deliveryId, headers }, { index, isBody }) => {
  if (deliveryId === undefined) return undefined;
  const id = isBody ? deliveryId : `${deliveryId}/${index}`;
  return { id, remembered: `${headers["last-event-id"]?.length ?? 0}:${id}` };
};

export const sse: ChannelKind = {
  kind: "sse",
  configSchema: sseConfigSchema,
  secretFields: [],
  addressed: false,
  profile: {
    roots: new Map<string, RootSource>([
      ["event", { valueIn: ({ delivery }) => delivery.headers.event }],
      ["lastEventId", { valueIn: ({ delivery }) => delivery.headers["last-event-id"] }],
    ]),
    ownId,
    bodiesAreParts: true,
    hasHeartbeats: true,
  },
  cursor: sseCursorFormat,
  originOf: (config) => new URL(getStoredConfig(sseConfigSchema, config).url).origin,
  needsSetup: () => false,
  async start(deps) {
    return { stream: createStreamSource(deps), async [Symbol.asyncDispose]() {} };
  },
};

/** Returns the settings as they are. Parsing them again would create a copy per open stream. */
const toConfig = (config: unknown): SseConfig => config as SseConfig;

/** Maximum number of channels for which the reconnect delay that the server sent in `retry` is cached. */
const MAX_RETRIES = 10_000;

/** Minimum reconnect delay that a server can set with `retry`. It protects the worker from servers that end every stream immediately. */
const MIN_RETRY_MS = 100;

/**
 * Creates the source of server-sent events. A `retry` value from the server applies until the server sends another one, even if attempts
 * fail in between. It is capped at `maxMs`. Values below `MIN_RETRY_MS` are raised to it, unless `initialMs` is even lower.
 */
export function createStreamSource(deps: OpenStreamDeps): StreamSource {
  const retries = new LRUCache<number, number>(upToEntries(MAX_RETRIES));
  return {
    reconnect: (config) => toConfig(config).reconnect,
    async runConnection(run) {
      const { number } = run.channel.identity;
      const config = toConfig(run.config);
      const end = await runConnection(deps, run, config, (ms) => retries.set(number, ms));
      const retryMs = retries.get(number);
      if (retryMs === undefined || (end.kind !== "done" && end.kind !== "failed")) return end;
      if (end.notBeforeMs !== undefined) return end;
      const { initialMs, maxMs } = config.reconnect;
      const leastMs = Math.min(MIN_RETRY_MS, initialMs);
      return { ...end, notBeforeMs: deps.clock() + Math.min(Math.max(retryMs, leastMs), maxMs) };
    },
  };
}
