import { LRUCache } from "lru-cache";
import type { StreamSource } from "../source.ts";
import type { OpenStreamDeps } from "./open-stream.ts";
import { runConnection } from "./run-connection.ts";
import { sseSettings } from "./settings.ts";

/** Channels whose server has said how long to wait before its stream is opened again. */
const MAX_RETRIES = 10_000;

/** A server that ends each stream and wants it back at once would keep whoever opens it busy with nothing else. */
const MIN_RETRY_MS = 100;

/**
 * Streams of server-sent events. What a server's `retry` says counts until it says otherwise, also over failed tries: no more than
 * `maxMs`, and no less than `MIN_RETRY_MS` where `initialMs` is not less itself.
 */
export function createStreamSource(deps: OpenStreamDeps): StreamSource {
  const retries = new LRUCache<number, number>({ max: MAX_RETRIES });
  return {
    reconnect: (settings) => sseSettings.parse(settings).reconnect,
    async runConnection(run) {
      const { number } = run.channel.identity;
      const settings = sseSettings.parse(run.settings);
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
