import { type BackendFactory, createRedisBackend, type RedisQueueBackend } from "bullmq";
import { nextTimeMs, parsePlan } from "./job-plan.ts";

/**
 * Position of the current time in each BullMQ command; negative positions count from the end. Other commands do not use the time to
 * compute due times.
 */
const TIME_ARGUMENT_INDEX: ReadonlyMap<string, number> = new Map([
  ["moveToActive", -2],
  ["moveToFinished", -8],
  ["moveToDelayed", -8],
  ["changeDelay", -3],
  ["addJobScheduler", -3],
  ["updateJobScheduler", -3],
]);
/** Index of the next delayed job's due time in a reply that contains a job. */
const NEXT_DUE_INDEX = 3;

/**
 * Wraps BullMQ's backend so that due times use the clock of Redis. BullMQ uses the clock of the machine: a worker that is two hours
 * ahead would store times that other workers reach two hours late. The wrapper converts times in both directions.
 *
 * @param aheadMs returns by how many ms this machine's clock is ahead of Redis
 */
export const createRedisTimeBackend =
  (aheadMs: () => number): BackendFactory<RedisQueueBackend> =>
  (name, options, flags) => {
    const backend = createRedisBackend(name, options, flags);
    const execCommand = backend.execCommand.bind(backend);
    const addJobScheduler = backend.addJobScheduler.bind(backend);
    const waitForJob = backend.waitForJob.bind(backend);
    const updateNextMillis = backend.updateJobSchedulerNextMillis.bind(backend);

    /** Returns the first time of the schedule after both `afterMs` and the current Redis time. Replaces BullMQ's own calculation. */
    const computeDueMs = (pattern: string | undefined, afterMs: number): number | undefined =>
      pattern === undefined
        ? undefined
        : nextTimeMs(parsePlan(pattern), Math.max(Date.now() - aheadMs(), afterMs));

    backend.execCommand = (client, command, args) => {
      const ahead = aheadMs();
      const place = TIME_ARGUMENT_INDEX.get(command);
      if (ahead === 0 || place === undefined) return execCommand(client, command, args);
      const reply: unknown = execCommand(client, command, args.with(place, Number(args.at(place)) - ahead));
      return reply instanceof Promise ? reply.then((got) => toLocalTime(got, ahead)) : reply;
    };
    backend.waitForJob = async (timeoutS) => {
      const marker = await waitForJob(timeoutS);
      // Keep a score of 0, which means that a job is ready now.
      return marker && marker.score > 0 ? { ...marker, score: marker.score + aheadMs() } : marker;
    };
    backend.addJobScheduler = (id, nextMs, data, templateOptions, repeat, jobOptions, producer) => {
      const dueMs = computeDueMs(repeat.pattern, repeat.startDate ?? 0) ?? nextMs;
      const due = { ...jobOptions, prevMillis: dueMs };
      return addJobScheduler(id, dueMs, data, templateOptions, repeat, due, producer);
    };
    backend.updateJobSchedulerNextMillis = (id, nextMs, data, jobOptions, producer) => {
      // `producer` is the id of the running job and ends with its due time. The next job must be due later.
      const takenMs = Number(producer?.slice(producer.lastIndexOf(":") + 1)) || 0;
      const dueMs = computeDueMs((jobOptions as Repeated).repeat?.pattern, takenMs) ?? nextMs;
      return updateNextMillis(id, dueMs, data, { ...jobOptions, prevMillis: dueMs }, producer);
    };
    return backend;
  };

/** Converts the next due time in a reply from Redis time to local time, because BullMQ's worker waits by the local clock. */
function toLocalTime(reply: unknown, aheadMs: number): unknown {
  const dueMs = Array.isArray(reply) ? Number(reply[NEXT_DUE_INDEX]) : 0;
  return dueMs > 0 && Array.isArray(reply) ? reply.with(NEXT_DUE_INDEX, dueMs + aheadMs) : reply;
}

/** Job options that BullMQ passes but does not declare in its types. */
interface Repeated {
  readonly repeat?: { readonly pattern?: string };
}
