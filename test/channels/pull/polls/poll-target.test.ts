import { expect, it } from "vitest";
import { openJobQueue } from "../../../../src/bus/jobs/job-queue.ts";
import type { Job } from "../../../../src/bus/jobs/job-worker.ts";
import { formatWakeName } from "../../../../src/bus/sources/wakes.ts";
import { addPoll, addTurn, type PollJob } from "../../../../src/channels/pull/polls/poll-target.ts";
import { openedBus } from "../../../bus/support.ts";
import { until } from "../../../support/until.ts";
import { NEVER_MS, silent } from "./polls-support.ts";

const { server, redis } = openedBus();

it("a wake that waited for a slot is due as soon as the slot is free", async () => {
  await using queue = openJobQueue<PollJob>({ redis, name: "wake-turns", log: silent });
  const starts: number[] = [];
  await using _ = queue.work(
    async (job) => {
      starts.push(job.starts);
      return job.starts === 1 ? { postponeMs: NEVER_MS } : undefined;
    },
    { concurrency: 1 },
  );
  const name = formatWakeName({ appId: "app_1", uid: "tiny" });
  await queue.addWaiting(name, { wake: name });
  await until(() => starts.length === 1);
  expect(await addTurn(queue, { name, sinceMs: 1 })).toBe(true);
  await until(() => starts.length === 2);
});

it("a polled source that is offered a free slot is polled, even if its previous job is still running", async () => {
  await using queue = openJobQueue<PollJob>({ redis, name: "turns", log: silent });
  const jobs: Job<PollJob>[] = [];
  const firstJob = Promise.withResolvers<{ readonly postponeMs: number }>();
  await using _ = queue.work(
    async (job) => {
      jobs.push(job);
      return jobs.length === 1 ? firstJob.promise : undefined;
    },
    { concurrency: 1 },
  );
  await addPoll(queue, 7, 0);
  await until(() => jobs.length === 1);
  let tries = 0;
  const racingQueue = {
    bringForward: queue.bringForward,
    async add(...job: Parameters<typeof queue.add>) {
      tries++;
      const added = await queue.add(...job);
      // The source is queued only after its job was taken by a worker.
      firstJob.resolve({ postponeMs: NEVER_MS });
      if (!added) await until(async () => (await server.client.keys("*{jobs.turns}*:delayed")).length === 1);
      return added;
    },
  };
  expect(await addTurn(racingQueue, { name: "7", sinceMs: 1 })).toBe(true);
  expect(tries).toBeGreaterThan(1);
  await until(() => jobs.length === 2);
  expect(jobs[1]?.data).toEqual({ channel: 7, sinceMs: 1 });
});
