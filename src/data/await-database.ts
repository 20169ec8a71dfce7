import { setTimeout as delay } from "node:timers/promises";
import { UnavailableError } from "../lib/errors.ts";
import type { Log } from "../log.ts";
import { isConnectionRefusal } from "./database.ts";

const RETRY_MS = 500;
/** Said at once, and then every ten seconds. */
const TOLD_EVERY = 20;

/**
 * The outcome of work that a start begins with. While PostgreSQL is away the work, which must bear that, is done again until
 * `signal` aborts; a server that refuses this user or has no such database is not waited for.
 *
 * @param options.onAway is told why, each time
 * @throws what the work throws besides UnavailableError; the signal's reason
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
      if (!(error instanceof UnavailableError) || isConnectionRefusal(error)) throw error;
      onAway(error.message);
      if (attempt % TOLD_EVERY === 0)
        log.warn({ event: "database.awaited", err: error }, "waiting for PostgreSQL");
    }
    await delay(RETRY_MS, undefined, { signal });
  }
}
