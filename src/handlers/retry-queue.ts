import type { JobQueue } from "../bus/jobs/job-queue.ts";
import type { FindRetry, PendingRetry, SendAgain } from "../event/handler.ts";
import { topicMark } from "../event/handler-request.ts";

export interface RetryQueue {
  /**
   * Schedules the next attempt. Scheduling the same attempt twice has no effect.
   *
   * @throws UnavailableError
   */
  readonly add: (job: PendingRetry, delayMs: number) => Promise<void>;
  readonly sendAgain: SendAgain;
  readonly findRetry: FindRetry;
}

/** Upper limit of attempts per event. Delays grow, so only about half as many attempts fit into the 24 hours before Inlet gives up. */
const MOST_ATTEMPTS = 64;

export function createRetryQueue(queue: Pick<JobQueue<PendingRetry>, "add" | "findFirst">): RetryQueue {
  const idOf = ({ subscriptionId, topic, entryId }: Parameters<FindRetry>[0]): string =>
    `${subscriptionId}.${topicMark(topic)}.${entryId}`;
  // Adding a job that is already running has no effect. That is correct, because a worker is already sending the event.
  return {
    async add(data, delayMs) {
      await queue.add({ id: `${idOf(data)}.${data.attempts.length}`, data, delayMs });
    },
    findRetry(event) {
      const ids = Array.from({ length: MOST_ATTEMPTS }, (_, before) => `${idOf(event)}.${before + 1}`);
      return queue.findFirst(ids);
    },
    async sendAgain(demandId, data) {
      await queue.add({ id: `${demandId}.${idOf(data)}`, data });
    },
  };
}
