import type { JobQueue } from "../bus/jobs/job-queue.ts";
import type { FindRetry, PendingDelivery, SendAgain } from "../event/handler.ts";
import { topicMark } from "../event/handler-request.ts";

/** Events to be sent to handlers once more. */
export interface RetryQueue {
  /** The same attempt at the same event is stored once. @throws UnavailableError */
  readonly add: (job: PendingDelivery, delayMs: number) => Promise<void>;
  readonly sendAgain: SendAgain;
  readonly findRetry: FindRetry;
}

/** Growing waits leave room for about half as many in a day. */
const MOST_ATTEMPTS = 64;

export function createRetryQueue(queue: Pick<JobQueue<PendingDelivery>, "add" | "findFirst">): RetryQueue {
  const idOf = ({ subscriptionId, topic, entryId }: Parameters<FindRetry>[0]): string =>
    `${subscriptionId}.${topicMark(topic)}.${entryId}`;
  // Where a worker has the same job just now, the event is on its way as well.
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
