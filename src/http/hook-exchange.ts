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
 * A webhook request and its response. It does not use the web `Request`, because creating one costs more CPU time than the write to Redis.
 */
export interface HookExchange {
  readonly method: string;
  /** Path and query string as sent. */
  readonly target: string;
  /** Request headers with lowercase names. Like `node:http`, this joins most repeated headers and drops some. */
  readonly headers: IncomingHttpHeaders;
  /** Network address of the client or proxy. Available even after it has disconnected. */
  readonly peerAddress: string | undefined;
  /** When the head was received, in milliseconds of `performance.now()`. */
  readonly sinceMs: number;
  /** Whether a response was sent, completely or in part. */
  readonly hasReplied: boolean;
  /** Returns all values of all headers, including repeated values that `headers` omits. */
  readonly readHeaderValues: () => Values;
  /**
   * Returns the body as bytes if it has arrived completely, otherwise as a stream. The stream of a body that was cut off emits `close`
   * without `end`. Call it at most once.
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

/** Handles a webhook request. `channelId` is `undefined` if the path contains no id. */
export type ReceiveHook = (channelId: string | undefined, exchange: HookExchange) => void;

/** Path of all channel addresses, followed by the channel id. */
export const HOOKS_PATH = "/hooks/";

/** Headers of every response. They prevent caching and rendering, because a response may repeat text from the request. */
export const COMMON_HEADERS = { "cache-control": "no-store", "x-content-type-options": "nosniff" } as const;
