import { EventSource } from "eventsource";
import { backoffMs } from "../../lib/backoff.ts";
import { sleep } from "../../lib/sleep.ts";
import { CommandError } from "../exit.ts";
import type { Io } from "../io.ts";
import { type Api, ApiError, createApi, formatCause, formatPath, parseErrorResponse } from "./api.ts";
import { findCredentials } from "./credentials.ts";

/** One step in reading an event stream: either an event, or only a new position without an event. */
export interface StreamStep {
  readonly position: string;
  /** The event as JSON text. `undefined` if the step contains only a new position. */
  readonly event: string | undefined;
}

export interface FollowOptions {
  readonly env: Io["env"];
  readonly appId: string;
  readonly type?: string | undefined;
  /** Stream position after which to start reading. `undefined` skips all existing events. */
  readonly from: string | undefined;
  readonly signal: AbortSignal;
  /** Called with the reason when the client waits before reconnecting, and with `undefined` when the stream opens. */
  readonly onWaiting: (reason: string | undefined) => void;
}

const MAX_EVENT_CHARACTERS = 256 * 1024 * 1024;
/**
 * Maximum time in ms without data before the client reconnects. The gateway sends its position every 15 s, but a sleeping laptop can
 * lose the connection without an error.
 */
const MAX_SILENCE_MS = 40_000;
const BACKOFF = { initialMs: 250, maxMs: 5_000, factor: 2, jitter: 0.5 } as const;
/** Attempts to reopen a stream whose key is rejected. They leave about a minute to store another key with `inlet login`. */
const MAX_REJECTED = 15;

/**
 * Yields the events of an app after a position until the signal aborts. Reopens the stream at the last position when it ends, and
 * after temporary failures, such as a gateway restart or status 503. If an open stream's key is revoked, the client waits for another
 * key from `inlet login`.
 *
 * @throws CommandError if reopening cannot help: invalid key, unknown app or invalid position
 */
export async function* followEvents(
  given: Api,
  options: FollowOptions,
): AsyncGenerator<StreamStep, void, undefined> {
  const { env, signal, onWaiting } = options;
  let api = given;
  let position = options.from;
  let failures = 0;
  let hasOpened = false;
  while (!signal.aborted) {
    let retryAfterMs = 0;
    let reason = "";
    try {
      const onOpen = (): void => {
        hasOpened = true;
        onWaiting(undefined);
      };
      for await (const step of readStream(api, { ...options, from: position, onOpen })) {
        failures = 0;
        position = step.position;
        yield step;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError) {
        const isRevoked = error.status === 401 && hasOpened && failures < MAX_REJECTED;
        if (!isRevoked && !isTemporary(error.status)) throw error;
        retryAfterMs = (error.retryAfterSeconds ?? 0) * 1_000;
        if (isRevoked) api = createApi(await findCredentials(env, api.baseUrl), signal);
      }
      reason = error instanceof CommandError ? error.message : formatCause(error);
    }
    failures++;
    onWaiting(reason);
    await sleep(Math.max(retryAfterMs, backoffMs(BACKOFF, failures, Math.random)), signal);
  }
}

/** Returns whether an HTTP status is temporary: 429, or any server error of the gateway or a proxy. */
const isTemporary = (status: number): boolean => status === 429 || status >= 500;

/**
 * Opens the event stream once and yields its steps. Throws when the stream ends, even without an error.
 *
 * `EventSource` does not read more slowly for a slow consumer, and reports neither silent connections nor error responses. So its `fetch`
 * is replaced: the body is read only after the previous steps were consumed, and failures are passed on.
 */
async function* readStream(
  api: Api,
  { appId, type, from, signal, onOpen }: FollowOptions & { readonly onOpen: () => void },
): AsyncGenerator<StreamStep, void, undefined> {
  const path = `${formatPath("apps", appId)}/events/stream`;
  const { readable, writable } = new TransformStream<StreamStep, StreamStep>();
  const steps = writable.getWriter();
  const end = (error: unknown): void => void steps.abort(error);
  const add = (position: string, event: string | undefined): void =>
    void steps.write({ position, event }).catch(end);
  const silence = new AbortController();
  const timer = setTimeout(() => {
    // The time that the consumer spends on an event does not count as silence.
    if ((steps.desiredSize ?? 0) <= 0) timer.refresh();
    else silence.abort(new Error("the gateway sent no data for 40 seconds"));
  }, MAX_SILENCE_MS).unref();

  async function* readBody(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      for await (const chunk of body) {
        yield chunk;
        await steps.ready;
        timer.refresh();
      }
    } catch (error) {
      end(error);
    }
  }

  const source = new EventSource(`${api.baseUrl}${path}`, {
    maxBufferSize: MAX_EVENT_CHARACTERS,
    async fetch(_, { signal: closed }) {
      try {
        const response = await api.open(path, {
          query: { type },
          headers: from === undefined ? {} : { "last-event-id": from },
          signal: AbortSignal.any([signal, silence.signal, closed]),
        });
        if (!response.ok) throw await parseErrorResponse(response, api.baseUrl);
        return new Response(response.body && ReadableStream.from(readBody(response.body)), response);
      } catch (error) {
        end(error);
        throw error;
      }
    },
  });
  source.onopen = onOpen;
  source.onmessage = ({ lastEventId, data }) => add(lastEventId, data);
  source.addEventListener("position", ({ lastEventId }) => add(lastEventId, undefined));
  source.onerror = ({ message }) => end(new Error(message ?? "the stream has ended"));
  try {
    yield* readable;
  } finally {
    clearTimeout(timer);
    source.close();
  }
}

/** Returns the stream position before all events at or after a time in ms since 1970. */
export const positionOf = (atMs: number): string => String(Math.max(0, Math.floor(atMs)));

/** Returns the id of the app, which is the sixth part of a topic name. */
export const appOf = (topic: string): string => topic.split(".", 6)[5] ?? "";
/** Returns the uid of the channel, which is the seventh part of a topic name. */
export const channelOf = (topic: string): string => topic.split(".", 7)[6] ?? "";
