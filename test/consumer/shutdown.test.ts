import { describe, expect, it } from "vitest";
import { opened } from "../support/opened.ts";
import { until } from "../support/until.ts";
import { makeSubscription, startTestRedis } from "./support.ts";

const server = opened(startTestRedis);

/** Claims are extended after a third of this time, every two seconds. */
const DEAD_AFTER_MS = 6_000;

describe.concurrent("a stopping reader", () => {
  for (const ordered of [false, true]) {
    it(`keeps its claim on the event that a handler is still processing${ordered ? ", and its lease on the topic in ordered mode" : ""}`, async () => {
      const subscription = await makeSubscription(server);
      const { id } = subscription;
      const [topic = ""] = subscription.topics;
      const log: string[] = [];
      const finish = Promise.withResolvers<void>();
      const stops = [new AbortController(), new AbortController()];
      const [slow, other] = stops.map(({ signal }, reader) =>
        subscription.consumer<number>({ ordered, deadAfterMs: DEAD_AFTER_MS, stopTimeoutMs: 3_600_000 }).run(
          async ({ data }) => {
            log.push(`${reader} begins ${data}`);
            if (data === 0) await finish.promise;
            log.push(`${reader} ends ${data}`);
          },
          { signal },
        ),
      );
      await subscription.send(topic, 0, 1);
      await until(() => log.length === 1);
      const [first = ""] = log;
      const holder = Number(first[0]);
      stops[holder]?.abort();
      /** Returns the time of the last extension of the claim, by the clock of Redis. */
      const keptAtMs = async (): Promise<number> => {
        const [[, , idleMs = 0] = []] = (await server.client.xpending(topic, id, "-", "+", 1)) as [
          string,
          string,
          number,
        ][];
        const [seconds = 0, micros = 0] = (await server.client.call("TIME", [])) as [number, number];
        return Number(seconds) * 1_000 + Number(micros) / 1_000 - idleMs;
      };
      const owner = (await server.client.hget(`inlet:{sub.${id}}:owners`, topic)) ?? "";
      const leaseEnd = async () => Number(await server.client.zscore(`inlet:{sub.${id}}:readers`, owner));
      const [keptBefore, endBefore] = [await keptAtMs(), await leaseEnd()];
      // The claim or lease is renewed even after the stop. Otherwise other readers would consider this one dead.
      await until(
        async () =>
          ordered ? (await leaseEnd()) > endBefore : (await keptAtMs()) > keptBefore + DEAD_AFTER_MS / 2,
        { everyMs: 100 },
      );
      expect(log).toEqual([first]);
      finish.resolve();
      await (holder === 0 ? slow : other);
      expect(log).toEqual([first, `${holder} ends 0`]);
      expect(await subscription.pending()).toBe(0);
      await subscription.send(topic, 1, 2);
      await until(() => log.length === 4);
      for (const stop of stops) stop.abort();
      await Promise.all([slow, other]);
    });
  }
});
