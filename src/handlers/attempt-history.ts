import type { HandlerAttempt } from "../event/handler.ts";
import type { DeliveredEvent } from "../event/handler-request.ts";

/** Maximum number of events whose attempts are remembered. The attempts of older events are forgotten, and their retries continue. */
const MAX_EVENTS = 1_000;
/** Maximum number of attempts per event, above the number that an ordered event gets. */
const MAX_ATTEMPTS = 100;

/** Remembers the failed attempts at ordered events, for the dead letters that they may become. */
export function createAttemptHistory() {
  const attemptsOf = new Map<string, readonly HandlerAttempt[]>();
  const keyOf = ({ topic, entryId }: Pick<DeliveredEvent, "topic" | "entryId">): string =>
    `${entryId} ${topic}`;

  return {
    /** Adds a failed attempt, and returns all attempts at the event so far. */
    add(event: DeliveredEvent, attempt: HandlerAttempt): readonly HandlerAttempt[] {
      const key = keyOf(event);
      const all = [...(attemptsOf.get(key) ?? []), attempt].slice(-MAX_ATTEMPTS);
      attemptsOf.delete(key);
      attemptsOf.set(key, all);
      const [oldest] = attemptsOf.keys();
      if (attemptsOf.size > MAX_EVENTS && oldest !== undefined) attemptsOf.delete(oldest);
      return all;
    },
    forget: (event: DeliveredEvent): void => void attemptsOf.delete(keyOf(event)),
  };
}
