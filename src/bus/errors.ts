/**
 * Thrown when a worker writes for a pull source that another worker now runs, or whose stored cursor has changed. The rejected part
 * was not written.
 *
 * The worker must restart the source from the stored cursor.
 */
export class StaleSourceError extends Error {
  override readonly name = "StaleSourceError";
  readonly stale: "epoch" | "cursor";

  constructor(cause: "epoch" | "cursor", message: string) {
    super(message);
    this.stale = cause;
  }
}

/** Thrown at startup if Redis is too old, evicts keys, or is less durable than `INLET_DURABILITY` requires. */
export class RedisUnfitError extends Error {
  override readonly name = "RedisUnfitError";
}
