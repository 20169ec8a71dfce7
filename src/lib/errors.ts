/**
 * Something that the work depends on cannot answer now: Redis, PostgreSQL, a budget that is full. Always worth a
 * retry; over HTTP it is a 503 with `Retry-After`. The message is for the log, never for a client.
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

/** One who asks has used up what they may have for now, as others have not; over HTTP it is a 429 with `Retry-After`. */
export class QuotaError extends UnavailableError {}

/** One thing wrong with an input: `path` names the field (`config.dedupe.windowSeconds`), `message` the reason. */
export interface Finding {
  readonly path: string;
  readonly message: string;
}
