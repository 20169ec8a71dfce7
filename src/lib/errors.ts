/**
 * Thrown when Redis or PostgreSQL is temporarily unavailable, or a shared resource limit is reached. The caller can always retry the
 * operation. The HTTP layer responds with 503 and `Retry-After`, and never sends the message to the client.
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
 * Thrown when a caller has used up its own quota, while other callers are not affected. The HTTP layer responds with 429 and
 * `Retry-After`.
 */
export class QuotaError extends UnavailableError {}

/** Thrown when a storage budget of an organization is used up. The message and the code are shown to its users. */
export class BudgetError extends UnavailableError {
  readonly code: "quarantine_full" | "topics_full";

  constructor(code: BudgetError["code"], message: string, options: { readonly retryAfterSeconds: number }) {
    super(message, options);
    this.code = code;
  }
}

/** A validation error. `path` names the invalid field, such as `config.dedupe.windowSeconds`. */
export interface Finding {
  readonly path: string;
  readonly message: string;
}
