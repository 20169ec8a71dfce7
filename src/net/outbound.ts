import type { Body } from "./body.ts";

/** A request to another server. */
export interface OutboundRequest {
  readonly method: string;
  readonly url: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

/** Limits of one call. Each has a default. */
export interface OutboundLimits {
  readonly connectTimeoutMs?: number;
  /** Maximum time from sending the request to receiving the response headers. */
  readonly headTimeoutMs?: number;
  /** Maximum time between two chunks of the response body. */
  readonly idleTimeoutMs?: number;
  /** Maximum time from the start of the call to the end of the body. Streams have no such limit. */
  readonly totalTimeoutMs?: number;
  /** Maximum size of the body after decoding `Content-Encoding`. */
  readonly maxBytes?: number;
  /** Maximum number of redirects. Each target is checked like the first URL; credentials are never sent to another origin. */
  readonly maxRedirects?: number;
}

export interface OutboundResponse {
  readonly status: number;
  /** Names in lower case; a repeated header is an array. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  /** URL of the response, after redirects. */
  readonly url: string;
  readonly body: Buffer;
}

/** A response whose body is read as a stream. */
export interface OutboundStream extends Pick<OutboundResponse, "status" | "headers" | "url"> {
  readonly body: Body;
}

/**
 * Reason of a failed call. `blocked`: outbound calls may not reach the address. `redirects`: too many redirects, or one that must not be
 * followed. `tooLarge`: the body exceeds its limit. The set is closed, because the reason is also a metric label.
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

/** A call without a complete response. Any HTTP status is a response. The message reveals no details of internal networks. */
export class OutboundError extends Error {
  override readonly name = "OutboundError";
  readonly code: OutboundFailure;

  constructor(code: OutboundFailure, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/**
 * The client for all outbound HTTP calls. It reaches only public addresses and networks that the operator allows.
 *
 * @throws OutboundError, or the reason of `signal`
 */
export interface Outbound {
  /** Sends a request and reads the complete response. */
  readonly request: (
    request: OutboundRequest,
    options: OutboundLimits & { readonly signal: AbortSignal },
  ) => Promise<OutboundResponse>;
  /**
   * Sends a request and returns the response as a stream without a total time limit. On abort, the body fails with the signal's reason.
   *
   * @throws TypeError if a header is invalid
   */
  readonly open: (
    request: OutboundRequest,
    options: Omit<OutboundLimits, "totalTimeoutMs" | "maxBytes"> & { readonly signal: AbortSignal },
  ) => Promise<OutboundStream>;
  /** Creates a `fetch` (WHATWG) for libraries, with the same guard, redirects and limits. */
  readonly fetch: (limits?: OutboundLimits) => typeof globalThis.fetch;
}
