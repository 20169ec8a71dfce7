import { ReplyError } from "ioredis";
import { UnavailableError } from "../../lib/errors.ts";

/** Replies by which Redis says "not now". */
const PASSING = new Set([
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

/**
 * The code at the head of an error reply: `WRONGTYPE`, `OOM`; undefined where the error is not Redis' reply.
 */
export function replyCode(error: unknown): string | undefined {
  return error instanceof ReplyError && error instanceof Error ? error.message.split(" ", 1)[0] : undefined;
}

/**
 * What the floors above should see: a passing state or a broken connection as UnavailableError, others as
 * they are.
 */
export function toBusError(error: unknown): unknown {
  if (error instanceof UnavailableError) return error;
  const code = replyCode(error);
  if (code !== undefined && !PASSING.has(code)) return error;
  const text = error instanceof Error ? error.message : String(error);
  return new UnavailableError(`Redis: ${text}`, { cause: error });
}
