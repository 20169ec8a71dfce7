/**
 * Thrown when Redis or PostgreSQL is temporarily unavailable, or a budget is exhausted. The caller can always retry the operation.
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

/** Thrown when a caller has used up its own quota. Other callers are not affected. The HTTP layer responds with 429 and `Retry-After`. */
export class QuotaError extends UnavailableError {}

/** An error in an input. `path` names the field, such as `config.dedupe.windowSeconds`. */
export interface Finding {
  readonly path: string;
  readonly message: string;
}
