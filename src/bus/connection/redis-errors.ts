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
 * The error as the floors above should see it: a passing state or a broken connection as UnavailableError, others as
 * they are.
 */
export function toBusError(error: unknown): unknown {
  if (error instanceof UnavailableError) return error;
  const code = replyCode(error);
  if (code !== undefined && !PASSING.has(code)) return error;
  const text = error instanceof Error ? error.message : String(error);
  return new UnavailableError(`Redis: ${text}`, { cause: error });
}

/** Replies by which a server refuses every write, whatever it holds, while it goes on answering questions. */
const REFUSES_WRITES = new Set(["OOM", "MISCONF", "NOREPLICAS", "NOPERM", "READONLY", "CLUSTERDOWN"]);

/** A write that Redis took is not as durable as was asked for. */
export class NotDurableError extends UnavailableError {}

/** Why a server takes no writes at all, for the operator; undefined where the error is about this write alone. */
export function writeRefusal(error: unknown): string | undefined {
  if (error instanceof NotDurableError) return `Redis does not keep writes as asked for: ${error.message}`;
  const cause = error instanceof UnavailableError ? error.cause : error;
  if (!(cause instanceof Error) || !REFUSES_WRITES.has(replyCode(cause) ?? "")) return undefined;
  return `Redis refuses writes: ${cause.message}`;
}
