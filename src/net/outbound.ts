import type { Body } from "./body.ts";

export interface OutboundRequest {
  readonly method: string;
  readonly url: string;
  /** Header names are in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

/** Limits of a single call. All of them have defaults. */
export interface OutboundLimits {
  readonly connectTimeoutMs?: number;
  /** Maximum time in ms between sending the request and receiving the response headers. */
  readonly headTimeoutMs?: number;
  /** Maximum time in ms between two chunks of the response body. */
  readonly idleTimeoutMs?: number;
  /** Maximum time in ms from the start of the call to the end of the body. Does not apply to streamed responses. */
  readonly totalTimeoutMs?: number;
  /** Maximum size of the decoded body in bytes, after removing `Content-Encoding`. */
  readonly maxBytes?: number;
  /**
   * Maximum number of redirects. The target of each redirect is checked like the original URL, and other origins never receive
   * credentials.
   */
  readonly maxRedirects?: number;
}

export interface OutboundResponse {
  readonly status: number;
  /** Response headers by name in lower case. The value of a repeated header is an array. */
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
 * Thrown when a call ends without a complete response; responses with an error status are complete. The message contains no details
 * of internal networks.
 */
export class OutboundError extends Error {
  override readonly name = "OutboundError";
  readonly code: OutboundFailure;

  constructor(code: OutboundFailure, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** Thrown when the address of a call, or that of a redirect, is private. */
export class PrivateAddressError extends OutboundError {
  constructor() {
    super("blocked", "the address is not public; add its network to INLET_ALLOW_NETWORKS to allow it");
  }
}

/**
 * Client for all outbound HTTP calls. It can only reach public addresses, and networks that the operator allows. All calls throw
 * `OutboundError`, or the reason of their signal.
 */
export interface Outbound {
  readonly request: (
    request: OutboundRequest,
    options: OutboundLimits & { readonly signal: AbortSignal },
  ) => Promise<OutboundResponse>;
  /**
   * Sends a request and returns a response stream without a total time limit. The signal also aborts reading the body.
   *
   * @throws TypeError if a header is invalid
   */
  readonly open: (
    request: OutboundRequest,
    options: Omit<OutboundLimits, "totalTimeoutMs" | "maxBytes"> & { readonly signal: AbortSignal },
  ) => Promise<OutboundStream>;
  /** Returns the private address to which calls to the URL would go now, or `undefined` if calls to it are allowed. */
  readonly findBlockedAddress: (url: string) => Promise<string | undefined>;
}
