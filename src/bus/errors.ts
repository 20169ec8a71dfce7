/**
 * Thrown when a pull source writes but no longer owns its position: a newer owner has a higher epoch, or the cursor has changed.
 * The rejected part of the delivery was not written. The source must stop and restart from the stored cursor.
 */
export class StaleSourceError extends Error {
  override readonly name = "StaleSourceError";
  readonly stale: "epoch" | "cursor";

  constructor(cause: "epoch" | "cursor", message: string) {
    super(message);
    this.stale = cause;
  }
}

/** Thrown at startup when Redis is too old, evicts keys, or is less durable than `INLET_DURABILITY` requires. */
export class RedisUnfitError extends Error {
  override readonly name = "RedisUnfitError";
}
