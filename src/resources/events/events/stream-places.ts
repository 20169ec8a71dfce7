import { ApiError } from "../../../http/problem.ts";
import { UnavailableError } from "../../../lib/errors.ts";

const RETRY_AFTER_SECONDS = 10;

/** Places for what goes on for long: so many on this worker, so many of them for one caller. */
export interface StreamPlaces {
  /**
   * Takes one; the answer gives it back, once.
   *
   * @throws ApiError 429 where the caller has its share, UnavailableError where the worker is full
   */
  readonly take: (caller: string) => () => void;
}

export function createStreamPlaces(limits: {
  readonly perWorker: number;
  readonly perCaller: number;
}): StreamPlaces {
  const taken = new Map<string, number>();
  let all = 0;
  return {
    take(caller) {
      const held = taken.get(caller) ?? 0;
      if (held >= limits.perCaller) {
        const message = `There are ${limits.perCaller} streams of this key on this worker already.`;
        const headers = { "Retry-After": String(RETRY_AFTER_SECONDS) };
        throw new ApiError("rate_limited", message, { headers });
      }
      if (all >= limits.perWorker) {
        throw new UnavailableError("this worker has all the event streams that it can", {
          retryAfterSeconds: RETRY_AFTER_SECONDS,
        });
      }
      all++;
      taken.set(caller, held + 1);
      let isHeld = true;
      return () => {
        if (!isHeld) return;
        isHeld = false;
        all--;
        const left = (taken.get(caller) ?? 1) - 1;
        if (left > 0) taken.set(caller, left);
        else taken.delete(caller);
      };
    },
  };
}
