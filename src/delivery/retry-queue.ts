import type { JobQueue } from "../bus/job-queue.ts";
import type { HandlerAttempt } from "../event/handler.ts";
import { type DeliveredEvent, topicMark } from "./handler-request.ts";

/** An event on its way to a handler that did not take it at once; it carries its own copy. */
export interface RetryJob extends DeliveredEvent {
  readonly subscriptionId: string;
  /** When it was sent first, or again on demand. */
  readonly firstAtMs: number;
  /** Those of before, oldest first. */
  readonly attempts: readonly HandlerAttempt[];
}

/** Events to be sent to handlers once more. */
export interface RetryQueue {
  /** The same attempt at the same event is stored once. @throws UnavailableError */
  readonly add: (job: RetryJob, delayMs: number) => Promise<void>;
  /** Sends an event on demand; the same demand twice sends it once. @throws UnavailableError */
  readonly demand: (demandId: string, job: RetryJob) => Promise<void>;
}

export function createRetryQueue(queue: Pick<JobQueue<RetryJob>, "add">): RetryQueue {
  const idOf = ({ subscriptionId, topic, entryId }: RetryJob): string =>
    `${subscriptionId}.${topicMark(topic)}.${entryId}`;
  return {
    add: (data, delayMs) => queue.add({ id: `${idOf(data)}.${data.attempts.length}`, data, delayMs }),
    demand: (demandId, data) => queue.add({ id: `${demandId}.${idOf(data)}`, data }),
  };
}
