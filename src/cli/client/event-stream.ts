import { EventStreamParser } from "../../channels/sse/event-stream-parser.ts";
import { backoffMs } from "../../lib/backoff.ts";
import { sleep } from "../../lib/sleep.ts";
import { CommandError } from "../exit.ts";
import { type Api, ApiRefusal, pathOf, reasonOf, refusalOf } from "./api.ts";

/** One step of a stream: an event, or that nothing else stands before that position. */
export interface StreamStep {
  /** Where the reader stands once it has this. */
  readonly position: string;
  /** The event as JSON text; undefined: there is none with this step. */
  readonly event: string | undefined;
}

export interface FollowOptions {
  readonly appId: string;
  readonly type?: string | undefined;
  /** From there on; undefined: from now. */
  readonly from: string | undefined;
  readonly signal: AbortSignal;
  /** Told when the stream is open, and when it has to wait and why. */
  readonly onState: (state: StreamState) => void;
}

export type StreamState =
  | { readonly kind: "open" }
  | { readonly kind: "waiting"; readonly reason: string; readonly waitMs: number };

const MAX_EVENT_BYTES = 256 * 1024 * 1024;
/** The gateway says each quarter of a minute that it is there: after a laptop's sleep a connection is dead, and nobody tells. */
const MAX_SILENCE_MS = 40_000;
const BACKOFF = { initialMs: 250, maxMs: 5_000, factor: 2, jitter: 0.5 } as const;

/**
 * Follows the events of an app, from a position on, through everything that ends a stream: a gateway that restarts or answers 503, a
 * network that is away, a machine that slept. Ends when the signal aborts.
 *
 * @throws CommandError where trying again does not help: the key, the app, the position
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
      if (error instanceof ApiRefusal && !isPassing(error.status)) throw error;
      if (error instanceof ApiRefusal) retryAfterMs = (error.retryAfterSeconds ?? 0) * 1_000;
      reason = error instanceof CommandError ? error.message : reasonOf(error);
    }
    if (signal.aborted) return;
    failures++;
    const waitMs = Math.max(retryAfterMs, backoffMs(BACKOFF, failures, Math.random));
    onState({ kind: "waiting", reason, waitMs });
    await sleep(waitMs, signal);
  }
}

/** Too many requests, and whatever the gateway or what stands before it cannot do just now. */
const isPassing = (status: number): boolean => status === 429 || status >= 500;

async function* readStream(api: Api, options: FollowOptions): AsyncGenerator<StreamStep, void, undefined> {
  const { appId, type, from, signal, onState } = options;
  using watch = watchSilence();
  const response = await api.open(`${pathOf("apps", appId)}/events/stream`, {
    query: { type },
    headers: from === undefined ? {} : { "last-event-id": from },
    signal: AbortSignal.any([signal, watch.signal]),
  });
  if (!response.ok) throw await refusalOf(response, api.baseUrl);
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
      // The time that the reader took over it is no silence of the stream.
      watch.heard();
    }
  }
}

/** Aborts when nothing was heard for too long. */
function watchSilence(): Disposable & { readonly signal: AbortSignal; readonly heard: () => void } {
  const silence = new AbortController();
  const timer = setTimeout(
    () => silence.abort(new Error("the gateway has not been heard of for a while")),
    MAX_SILENCE_MS,
  );
  timer.unref();
  return {
    signal: silence.signal,
    heard: () => void timer.refresh(),
    [Symbol.dispose]: () => clearTimeout(timer),
  };
}

/** The position of a time, after which all events come. */
export const positionOf = (atMs: number): string => String(Math.max(0, Math.floor(atMs)));

/** The uid of the channel that an event came by, as its topic says it. */
export const channelOf = (topic: string): string => topic.split(".", 7)[6] ?? "";
