import type { JobQueue } from "../bus/jobs/job-queue.ts";
import type { PendingDelivery, SendAgain } from "../event/handler.ts";
import { topicMark } from "../event/handler-request.ts";

/** Events to be sent to handlers once more. */
export interface RetryQueue {
  /** The same attempt at the same event is stored once. @throws UnavailableError */
  readonly add: (job: PendingDelivery, delayMs: number) => Promise<void>;
  readonly sendAgain: SendAgain;
}

export function createRetryQueue(queue: Pick<JobQueue<PendingDelivery>, "add">): RetryQueue {
  const idOf = ({ subscriptionId, topic, entryId }: PendingDelivery): string =>
    `${subscriptionId}.${topicMark(topic)}.${entryId}`;
  // Where a worker has the same job just now, the event is on its way as well.
  return {
    async add(data, delayMs) {
      await queue.add({ id: `${idOf(data)}.${data.attempts.length}`, data, delayMs });
    },
    async sendAgain(demandId, data) {
      await queue.add({ id: `${demandId}.${idOf(data)}`, data });
    },
  };
}
