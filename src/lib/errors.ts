/**
 * Thrown when a dependency is temporarily unavailable: Redis, PostgreSQL, or an exhausted budget. The caller can always retry
 * the operation.
 *
 * The HTTP layer responds with 503 and `Retry-After`. The message is for logs and is never sent to a client.
 */
export class UnavailableError extends Error {
  override readonly name = "UnavailableError";
  readonly retryAfterSeconds: number;

  constructor(
    message: string,
    options: { readonly cause?: unknown; readonly retryAfterSeconds?: number } = {},
  ) {
    super(message, { cause: options.cause });
    this.retryAfterSeconds = options.retryAfterSeconds ?? 1;
  }
}

/**
 * Thrown when a caller has exhausted its own quota, while other callers can continue. The HTTP layer responds with 429 and
 * `Retry-After`.
 */
export class QuotaError extends UnavailableError {}

/** An error in an input. `path` names the field (such as `config.dedupe.windowSeconds`), and `message` explains the error. */
export interface Finding {
  readonly path: string;
  readonly message: string;
}
