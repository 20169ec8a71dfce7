import { ReplyError } from "ioredis";
import { UnavailableError } from "../../lib/errors.ts";

/** Codes of temporary Redis errors, after which a retry can succeed. */
const TRANSIENT = new Set([
  "LOADING",
  "READONLY",
  "OOM",
  "MISCONF",
  "NOREPLICAS",
  "BUSY",
  "MASTERDOWN",
  "CLUSTERDOWN",
  "TRYAGAIN",
  "MOVED",
  "ASK",
  "UNBLOCKED",
]);

/** Returns the code of a Redis error reply, such as `WRONGTYPE` or `OOM`. Returns `undefined` for other errors. */
export function replyCode(error: unknown): string | undefined {
  return error instanceof ReplyError && error instanceof Error ? error.message.split(" ", 1)[0] : undefined;
}

/** Converts temporary errors and connection errors to UnavailableError. Returns other errors unchanged. */
export function toBusError(error: unknown): unknown {
  if (error instanceof UnavailableError) return error;
  const code = replyCode(error);
  if (code !== undefined && !TRANSIENT.has(code)) return error;
  const text = error instanceof Error ? error.message : String(error);
  return new UnavailableError(`Redis: ${text}`, { cause: error });
}

/** Codes of Redis errors that affect every write. A server with such an error still serves reads. */
const REJECTS_ALL_WRITES = new Set(["OOM", "MISCONF", "NOREPLICAS", "NOPERM", "READONLY", "CLUSTERDOWN"]);

/** Thrown when Redis has applied a write but has not confirmed the required durability. */
export class NotDurableError extends UnavailableError {}

/** Returns a message for the operator if the server rejects all writes. Returns `undefined` if the error concerns only this write. */
export function findWriteRejection(error: unknown): string | undefined {
  if (error instanceof NotDurableError)
    return `Redis does not reach the required durability: ${error.message}`;
  const cause = error instanceof UnavailableError ? error.cause : error;
  if (!(cause instanceof Error) || !REJECTS_ALL_WRITES.has(replyCode(cause) ?? "")) return undefined;
  return `Redis rejects writes: ${cause.message}`;
}
