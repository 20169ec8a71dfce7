import { EventStreamParser } from "../../channels/sse/event-stream-parser.ts";
import { backoffMs } from "../../lib/backoff.ts";
import { sleep } from "../../lib/sleep.ts";
import { CommandError } from "../exit.ts";
import { type Api, ApiError, formatCause, formatPath, parseErrorResponse } from "./api.ts";

/** One step in reading an event stream: either an event, or only a new position without an event. */
export interface StreamStep {
  readonly position: string;
  /** The event as JSON text. `undefined` if the step contains only a new position. */
  readonly event: string | undefined;
}

export interface FollowOptions {
  readonly appId: string;
  readonly type?: string | undefined;
  /** Stream position after which to start reading. `undefined` skips all existing events. */
  readonly from: string | undefined;
  readonly signal: AbortSignal;
  /** Called when the stream opens, and when the client waits before reconnecting. */
  readonly onState: (state: StreamState) => void;
}

export type StreamState =
  | { readonly kind: "open" }
  | { readonly kind: "waiting"; readonly reason: string; readonly waitMs: number };

const MAX_EVENT_BYTES = 256 * 1024 * 1024;
/**
 * Maximum time in ms without data before the client reconnects. The gateway sends a heartbeat every 15 s, but a sleeping laptop can
 * lose the connection without an error.
 */
const MAX_SILENCE_MS = 40_000;
const BACKOFF = { initialMs: 250, maxMs: 5_000, factor: 2, jitter: 0.5 } as const;

/**
 * Yields the events of an app after a position until the signal aborts. Reconnects after temporary failures, such as a gateway
 * restart or status 503.
 *
 * @throws CommandError if reconnecting cannot help: invalid key, unknown app or invalid position
 */
export async function* followEvents(
  api: Api,
  options: FollowOptions,
): AsyncGenerator<StreamStep, void, undefined> {
  const { signal, onState } = options;
  let position = options.from;
  let failures = 0;
  while (!signal.aborted) {
    let retryAfterMs = 0;
    let reason = "the stream has ended";
    try {
      for await (const step of readStream(api, { ...options, from: position })) {
        failures = 0;
        position = step.position;
        yield step;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError && !isPassing(error.status)) throw error;
      if (error instanceof ApiError) retryAfterMs = (error.retryAfterSeconds ?? 0) * 1_000;
      reason = error instanceof CommandError ? error.message : formatCause(error);
    }
    if (signal.aborted) return;
    failures++;
    const waitMs = Math.max(retryAfterMs, backoffMs(BACKOFF, failures, Math.random));
    onState({ kind: "waiting", reason, waitMs });
    await sleep(waitMs, signal);
  }
}

/** Returns whether an HTTP status is temporary: 429, or any server error of the gateway or a proxy. */
const isPassing = (status: number): boolean => status === 429 || status >= 500;

async function* readStream(api: Api, options: FollowOptions): AsyncGenerator<StreamStep, void, undefined> {
  const { appId, type, from, signal, onState } = options;
  using watch = watchSilence();
  const response = await api.open(`${formatPath("apps", appId)}/events/stream`, {
    query: { type },
    headers: from === undefined ? {} : { "last-event-id": from },
    signal: AbortSignal.any([signal, watch.signal]),
  });
  if (!response.ok) throw await parseErrorResponse(response, api.baseUrl);
  onState({ kind: "open" });
  const parser = new EventStreamParser({ maxEventBytes: MAX_EVENT_BYTES });
  let position = from;
  for await (const chunk of response.body ?? []) {
    watch.heard();
    for (const message of parser.read(chunk)) {
      if (message.kind === "retry") continue;
      position = message.id ?? position;
      if (position === undefined) continue;
      yield { position, event: message.kind === "frame" ? message.data : undefined };
      // Restart the timer, because the time that the consumer spent on this event must not count as silence.
      watch.heard();
    }
  }
}

/** Creates a signal that aborts if `heard` is not called for `MAX_SILENCE_MS`, and thus detects a dead connection. */
function watchSilence(): Disposable & { readonly signal: AbortSignal; readonly heard: () => void } {
  const silence = new AbortController();
  const timer = setTimeout(
    () => silence.abort(new Error("the gateway sent no data for 40 seconds")),
    MAX_SILENCE_MS,
  );
  timer.unref();
  return {
    signal: silence.signal,
    heard: () => void timer.refresh(),
    [Symbol.dispose]: () => clearTimeout(timer),
  };
}

/** Returns the stream position before all events at or after a time in ms since 1970. */
export const positionOf = (atMs: number): string => String(Math.max(0, Math.floor(atMs)));

/** Returns the uid of the channel, which is the seventh part of a topic name. */
export const channelOf = (topic: string): string => topic.split(".", 7)[6] ?? "";
