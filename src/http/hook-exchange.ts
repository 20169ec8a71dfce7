import type { IncomingHttpHeaders } from "node:http";
import type { Readable } from "node:stream";
import type { Values } from "../event/values.ts";

/** The response to a request to a channel's address. */
export interface HookReply {
  readonly status: number;
  /** Header names in lower case. `connection` can only be `close`. */
  readonly headers: Readonly<Record<string, string>>;
  /** `undefined` for an empty body. */
  readonly body?: string;
}

/**
 * One request to a channel's address, with its response. There are two transports: `node:http`, and the fast path. Neither creates a web
 * `Request`, because that costs more CPU time than the write to Redis.
 */
export interface HookExchange {
  readonly method: string;
  /** Path and query string as sent. */
  readonly target: string;
  /** Headers as `node:http` presents them: it joins most repeated headers and drops some. Names are in lower case. */
  readonly headers: IncomingHttpHeaders;
  /** Address of the peer. It stays available after the peer has disconnected. */
  readonly peerAddress: string | undefined;
  /** When the head was received, in milliseconds of `performance.now()`. */
  readonly sinceMs: number;
  /** Whether a response was sent, even if only in part. */
  readonly hasReplied: boolean;
  /** Returns all values of all headers, also those that `headers` drops. */
  readonly readHeaderValues: () => Values;
  /**
   * Returns the body: its bytes if they have all arrived, otherwise a stream. The stream of a body that was cut off emits `close` without
   * `end`. Call it at most once.
   */
  readonly takeBody: () => Buffer | Readable;
  /**
   * Sends the response. If the sender is still sending its body, the rest is discarded, and the connection is closed when the rest takes
   * too long.
   *
   * @throws TypeError for an invalid header, before any byte is sent
   */
  readonly reply: (reply: HookReply, requestId: string) => void;
  /** Closes the connection without a response. */
  readonly abort: () => void;
  /** Resolves once the response is sent or the connection is closed. */
  readonly closed: () => Promise<void>;
}

/** Receives a request. `channelId` is `undefined` if the path contains none. */
export type ReceiveHook = (channelId: string | undefined, exchange: HookExchange) => void;

/** Path prefix of all channel addresses. The channel id follows. */
export const HOOKS_PATH = "/hooks/";

/** Headers of every response. A response may repeat text from the request, so it must not be cached or rendered by a browser. */
export const COMMON_HEADERS = { "cache-control": "no-store", "x-content-type-options": "nosniff" } as const;

/** How long the rest of a body is read after an early response. A sender that is still sending could miss the response otherwise. */
export const DRAIN_MS = 500;
