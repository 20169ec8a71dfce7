import { UnavailableError } from "../../lib/errors.ts";
import type { KeySource } from "./key-source.ts";

/** Maximum number of deliveries per channel that wait for a key fetch, because each waiting delivery keeps its body in memory. */
const MAX_WAITING = 64;

/**
 * Limits how many deliveries of a channel wait for keys. Further requests for keys fail with UnavailableError, so that the sender
 * retries.
 */
export function boundWaiting(keys: KeySource): KeySource {
  let waiting = 0;

  function wait<T>(fetching: Promise<T>): Promise<T> {
    if (waiting >= MAX_WAITING) {
      fetching.catch(() => {});
      const message = "too many deliveries of the channel are waiting for the sender's keys";
      throw new UnavailableError(message, { retryAfterSeconds: 5 });
    }
    waiting++;
    return fetching.finally(() => {
      waiting--;
    });
  }

  return {
    get(url, nowMs) {
      const found = keys.get(url, nowMs);
      return found instanceof Promise ? wait(found) : found;
    },
    renew: async (url, nowMs) => wait(keys.renew(url, nowMs)),
  };
}
