/**
 * A pull source that no longer owns what it writes: a newer owner has stamped its epoch, or the cursor moved
 * on. Nothing of the delivery's refused part was written. The source must let go and start again from the
 * stored cursor.
 */
export class StaleSourceError extends Error {
  override readonly name = "StaleSourceError";
  readonly stale: "epoch" | "cursor";

  constructor(cause: "epoch" | "cursor", message: string) {
    super(message);
    this.stale = cause;
  }
}

/** A Redis that Inlet must not run on: too old, evicting, or less durable than asked for. Stops the start. */
export class RedisUnfitError extends Error {
  override readonly name = "RedisUnfitError";
}
