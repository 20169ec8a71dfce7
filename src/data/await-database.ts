import { setTimeout as delay } from "node:timers/promises";
import { UnavailableError } from "../lib/errors.ts";
import type { Log } from "../log.ts";
import { isConnectionRefused } from "./database.ts";

const RETRY_MS = 500;
/** Number of failures per log line. The first failure is logged, and then every 20th, which is one line every ten seconds. */
const TOLD_EVERY = 20;

/**
 * Runs `work` during startup, and retries it while PostgreSQL is unavailable. `work` may run several times, so it must be
 * idempotent.
 *
 * @param options.onAway called with the reason after each failed attempt
 * @returns the result of `work`
 * @throws UnavailableError immediately if the server rejects the user or does not have the database
 * @throws any other error of `work`, or the reason of `signal` when it aborts
 */
export async function awaitDatabase<T>(
  options: {
    readonly log: Log;
    readonly signal: AbortSignal;
    readonly onAway: (reason: string) => void;
  },
  work: () => Promise<T>,
): Promise<T> {
  const { log, signal, onAway } = options;
  for (let attempt = 0; ; attempt++) {
    signal.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof UnavailableError) || isConnectionRefused(error)) throw error;
      onAway(error.message);
      if (attempt % TOLD_EVERY === 0)
        log.warn({ event: "database.awaited", err: error }, "waiting for PostgreSQL");
    }
    await delay(RETRY_MS, undefined, { signal });
  }
}
