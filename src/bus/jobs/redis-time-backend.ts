import { type BackendFactory, createRedisBackend, type RedisQueueBackend } from "bullmq";
import { nextTimeMs, parsePlan } from "./job-plan.ts";

/**
 * Where the commands of BullMQ take this machine's time among their keys and arguments; a negative place counts from the end. Of
 * other commands the time decides nothing.
 */
const TIME_AT: ReadonlyMap<string, number> = new Map([
  ["moveToActive", -2],
  ["moveToFinished", -8],
  ["moveToDelayed", -8],
  ["changeDelay", -3],
  ["addJobScheduler", -3],
  ["updateJobScheduler", -3],
]);
/** In the reply of a command that hands out a job: when the next delayed one is due. */
const NEXT_DUE_AT = 3;

/**
 * BullMQ's own backend, with due times by the clock of Redis. BullMQ goes by this machine's: a worker that is two hours ahead would
 * store times that no other worker reaches for two hours. Here all times are translated on their way to Redis and back.
 *
 * @param aheadMs by how much this machine's clock is ahead of that of Redis
 */
export const createRedisTimeBackend =
  (aheadMs: () => number): BackendFactory<RedisQueueBackend> =>
  (name, options, flags) => {
    const backend = createRedisBackend(name, options, flags);
    const execCommand = backend.execCommand.bind(backend);
    const addJobScheduler = backend.addJobScheduler.bind(backend);
    const waitForJob = backend.waitForJob.bind(backend);
    const updateNextMillis = backend.updateJobSchedulerNextMillis.bind(backend);

    /** The next time of a schedule that is later than now and than that, whatever BullMQ has found by this machine's clock. */
    const dueOf = (pattern: string | undefined, afterMs: number): number | undefined =>
      pattern === undefined
        ? undefined
        : nextTimeMs(parsePlan(pattern), Math.max(Date.now() - aheadMs(), afterMs));

    backend.execCommand = (client, command, args) => {
      const ahead = aheadMs();
      const place = TIME_AT.get(command);
      if (ahead === 0 || place === undefined) return execCommand(client, command, args);
      const reply: unknown = execCommand(client, command, args.with(place, Number(args.at(place)) - ahead));
      return reply instanceof Promise ? reply.then((got) => toOwnTime(got, ahead)) : reply;
    };
    backend.waitForJob = async (timeoutS) => {
      const marker = await waitForJob(timeoutS);
      // 0: something is to be done now.
      return marker && marker.score > 0 ? { ...marker, score: marker.score + aheadMs() } : marker;
    };
    backend.addJobScheduler = (id, nextMs, data, templateOptions, repeat, jobOptions, producer) => {
      const dueMs = dueOf(repeat.pattern, repeat.startDate ?? 0) ?? nextMs;
      const due = { ...jobOptions, prevMillis: dueMs };
      return addJobScheduler(id, dueMs, data, templateOptions, repeat, due, producer);
    };
    backend.updateJobSchedulerNextMillis = (id, nextMs, data, jobOptions, producer) => {
      // Its id names the time of the job that is just taken: the next one is later.
      const takenMs = Number(producer?.slice(producer.lastIndexOf(":") + 1)) || 0;
      const dueMs = dueOf((jobOptions as Repeated).repeat?.pattern, takenMs) ?? nextMs;
      return updateNextMillis(id, dueMs, data, { ...jobOptions, prevMillis: dueMs }, producer);
    };
    return backend;
  };

/** Workers wait until then by their own clock. */
function toOwnTime(reply: unknown, aheadMs: number): unknown {
  const dueMs = Array.isArray(reply) ? Number(reply[NEXT_DUE_AT]) : 0;
  return dueMs > 0 && Array.isArray(reply) ? reply.with(NEXT_DUE_AT, dueMs + aheadMs) : reply;
}

/** As BullMQ hands them over, beside what its type says. */
interface Repeated {
  readonly repeat?: { readonly pattern?: string };
}
