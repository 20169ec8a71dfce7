import type { Body } from "./body.ts";

/** A call to somebody else's server. */
export interface OutboundRequest {
  readonly method: string;
  readonly url: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

/** Bounds of one call; each has a default. */
export interface OutboundLimits {
  readonly connectTimeoutMs?: number;
  /** From the sending of the request to the head of its answer. */
  readonly headTimeoutMs?: number;
  /** Between two chunks of the answer's body. */
  readonly idleTimeoutMs?: number;
  /** From the beginning to the end of the body; streams have none. */
  readonly totalTimeoutMs?: number;
  /** Of the body, after `Content-Encoding` was undone. */
  readonly maxBytes?: number;
  /** Followed up to so many; each target is checked like the first, and credentials never go to another origin. */
  readonly maxRedirects?: number;
}

export interface OutboundResponse {
  readonly status: number;
  /** Names in lower case; a repeated header is an array. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  /** Where the answer came from, after redirects. */
  readonly url: string;
  readonly body: Buffer;
}

/** An answer whose body is read as it comes. */
export interface OutboundStream extends Pick<OutboundResponse, "status" | "headers" | "url"> {
  readonly body: Body;
}

/**
 * Why a call brought no answer. `blocked`: an address that outbound calls may not reach. `redirects`: too many, or one that
 * may not be followed. `tooLarge`: the body. A closed set: it is also a metric label.
 */
export type OutboundFailure =
  | "blocked"
  | "unresolved"
  | "refused"
  | "tls"
  | "timeout"
  | "reset"
  | "redirects"
  | "tooLarge"
  | "protocol";

/** A call that brought no whole answer. Another status than 2xx is an answer. The message tells nothing of inner networks. */
export class OutboundError extends Error {
  override readonly name = "OutboundError";
  readonly code: OutboundFailure;

  constructor(code: OutboundFailure, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/**
 * The one way out of the gateway: to public addresses, and to those that the operator allows.
 *
 * @throws OutboundError; the reason of `signal` where it aborts.
 */
export interface Outbound {
  /** A call whose answer is read whole. */
  readonly request: (
    request: OutboundRequest,
    options: OutboundLimits & { readonly signal: AbortSignal },
  ) => Promise<OutboundResponse>;
  /**
   * A call whose answer is read as it comes, for as long as that takes. The body ends with the reason of the signal.
   *
   * @throws TypeError where a header is none
   */
  readonly open: (
    request: OutboundRequest,
    options: Omit<OutboundLimits, "totalTimeoutMs" | "maxBytes"> & { readonly signal: AbortSignal },
  ) => Promise<OutboundStream>;
  /** For libraries that want a `fetch` (WHATWG): the same guard, redirects and limits, the body as it comes. */
  readonly fetch: (limits?: OutboundLimits) => typeof globalThis.fetch;
}
