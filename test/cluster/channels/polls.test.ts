import { expect, it } from "vitest";
import { openJobQueue } from "../../../src/bus/jobs/job-queue.ts";
import { createWakes, type WakeJob } from "../../../src/bus/sources/wakes.ts";
import { openTestRedis } from "../../bus/support.ts";
import { silent, startPollsWorker, wanted } from "../../channels/pull/polls/polls-support.ts";
import { startRedisCluster } from "../../support/redis.ts";
import { until } from "../../support/until.ts";

it("sources are polled on schedule and within their concurrency limits in a Redis Cluster", async () => {
  await using cluster = await startRedisCluster();
  await using redis = await openTestRedis(cluster.url);
  let now = 0;
  let most = 0;
  const polled = new Map<number, number>();
  const poll = async ({
    channel,
  }: {
    readonly channel: { readonly identity: { readonly number: number } };
  }) => {
    const { number } = channel.identity;
    polled.set(number, (polled.get(number) ?? 0) + 1);
    most = Math.max(most, ++now);
    // Each poll waits until three run at once, then 20 ms longer, so that a wrong fourth one would be seen.
    await until(() => most >= 3);
    await new Promise((resolve) => setTimeout(resolve, 20));
    now--;
    return { kind: "done" } as const;
  };
  const options = { limits: { perOrigin: 3, perOrganization: 100 } };
  await using one = startPollsWorker(redis, poll, options);
  await using other = startPollsWorker(redis, poll, options);
  const schedule = { everySeconds: 1, jitter: 0.1 };
  const sources = Array.from({ length: 20 }, (_, i) =>
    wanted(i, { schedule, origin: "https://one.example" }),
  );
  for (const { engine } of [one, other]) engine.sync(sources);
  await until(() => polled.size === 20 && [...polled.values()].every((count) => count >= 3));
  expect(most).toBe(3);
  const slots = await Promise.all(cluster.masters.map(({ client }) => client.keys("inlet:{jobs.polls}*")));
  expect(slots.filter((keys) => keys.length > 0)).toHaveLength(1);
});

it("a source is polled when it is woken in a Redis Cluster, and the wakes are counted", async () => {
  await using cluster = await startRedisCluster();
  await using redis = await openTestRedis(cluster.url);
  await using queue = openJobQueue<WakeJob>({ redis, name: "polls", log: silent });
  const wakes = createWakes({ redis, queue });
  let polls = 0;
  await using worker = startPollsWorker(redis, async () => {
    polls++;
    return { kind: "done" } as const;
  });
  const source = wanted(1);
  worker.engine.sync([source]);
  await until(() => polls === 1);
  await wakes.store(source.identity, Date.now());
  await until(() => polls === 2);
  expect(await wakes.readCount(source.identity)).toMatchObject({ count: 1 });
});
