import { UnavailableError } from "../../lib/errors.ts";
import type { KeySource } from "./key-source.ts";

/** Deliveries of a channel that wait for keys to be fetched; each holds its body meanwhile. */
const MAX_WAITING = 64;

/** The same keys for one channel, of which only so many requests wait for a fetch at once: others are told to come again. */
export function boundWaiting(keys: KeySource): KeySource {
  let waiting = 0;

  function wait<T>(fetching: Promise<T>): Promise<T> {
    if (waiting >= MAX_WAITING) {
      fetching.catch(() => {});
      const message = "too many deliveries of the channel wait for the sender's keys";
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
