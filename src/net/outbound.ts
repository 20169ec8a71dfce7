import type { Body } from "./body.ts";

export interface OutboundRequest {
  readonly method: string;
  readonly url: string;
  /** Header names are in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

/** Limits of one call. All of them have defaults. */
export interface OutboundLimits {
  readonly connectTimeoutMs?: number;
  /** Maximum time in ms from sending the request to receiving the response headers. */
  readonly headTimeoutMs?: number;
  /** Maximum time in ms between two chunks of the response body. */
  readonly idleTimeoutMs?: number;
  /** Maximum time in ms from the start of the call to the end of the body. Does not apply to streams. */
  readonly totalTimeoutMs?: number;
  /** Maximum size of the body in bytes, after decoding `Content-Encoding`. */
  readonly maxBytes?: number;
  /**
   * Maximum number of redirects. The target of each one is checked like the original URL. Credentials are never sent to another
   * origin.
   */
  readonly maxRedirects?: number;
}

export interface OutboundResponse {
  readonly status: number;
  /** Header names are in lower case. The value of a repeated header is an array. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  /** URL of the response, after redirects. */
  readonly url: string;
  readonly body: Buffer;
}

export interface OutboundStream extends Pick<OutboundResponse, "status" | "headers" | "url"> {
  readonly body: Body;
}

/**
 * Reason why a call failed. The reasons are a fixed set, because they are also values of a metric label.
 *
 * - `blocked`: outbound calls may not reach the address.
 * - `redirects`: there were too many redirects, or one must not be followed.
 * - `tooLarge`: the body exceeds its size limit.
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

/**
 * Thrown when a call ends without a complete response. A response with an error status is complete. The message contains no
 * details of internal networks.
 */
export class OutboundError extends Error {
  override readonly name = "OutboundError";
  readonly code: OutboundFailure;

  constructor(code: OutboundFailure, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/**
 * The client for all outbound HTTP calls. It reaches public addresses, and networks that the operator allows. All calls throw
 * OutboundError, or the reason of their signal.
 */
export interface Outbound {
  readonly request: (
    request: OutboundRequest,
    options: OutboundLimits & { readonly signal: AbortSignal },
  ) => Promise<OutboundResponse>;
  /**
   * Sends a request and returns the response as a stream, which has no total time limit. If the signal aborts, reading the body
   * fails with the signal's reason.
   *
   * @throws TypeError if a header is invalid
   */
  readonly open: (
    request: OutboundRequest,
    options: Omit<OutboundLimits, "totalTimeoutMs" | "maxBytes"> & { readonly signal: AbortSignal },
  ) => Promise<OutboundStream>;
  /** Creates a `fetch` function (WHATWG) for libraries, with the same address guard, redirect rules and limits. */
  readonly fetch: (limits?: OutboundLimits) => typeof globalThis.fetch;
}
