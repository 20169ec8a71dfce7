import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { until } from "../support/until.ts";
import { makeSubscription, startTestRedis, type TestRedis } from "./support.ts";

let server: TestRedis;
beforeAll(async () => {
  server = await startTestRedis();
});
afterAll(() => server[Symbol.asyncDispose]());

describe("a reader that is told to stop", () => {
  for (const ordered of [false, true]) {
    it(`keeps what its last handler works on${ordered ? ", and its ordered topic" : ""}, longer than a dead reader would`, async () => {
      const subscription = await makeSubscription(server);
      const [topic = ""] = subscription.topics;
      const log: string[] = [];
      const finish = Promise.withResolvers<void>();
      const stops = [new AbortController(), new AbortController()];
      const [slow, other] = stops.map(({ signal }, reader) =>
        subscription.consumer<number>({ ordered, deadAfterMs: 1_000, stopTimeoutMs: 20_000 }).run(
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
      // Twice as long as a reader may be silent: the time itself is what is tested.
      await delay(2_500);
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
