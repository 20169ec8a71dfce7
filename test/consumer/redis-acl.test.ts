import { readFileSync } from "node:fs";
import { Redis } from "ioredis";
import { describe, expect, it } from "vitest";
import { parseRedisAddresses } from "../../src/lib/addresses/redis-address.ts";
import { opened } from "../support/opened.ts";
import { createTestRedis } from "../support/test-redis.ts";
import { until } from "../support/until.ts";
import { makeSubscription } from "./support.ts";

const server = opened(createTestRedis);
const PASSWORD = "a-password";

/** Returns the arguments of `ACL SETUSER` in the guide, with values in place of its variables. */
function readRules(values: Readonly<Record<string, string>>): readonly string[] {
  const page = readFileSync(new URL("../../src/docs/redis-acl.md", import.meta.url), "utf8");
  const command = /ACL SETUSER ([\s\S]*?)```/.exec(page)?.[1]?.replaceAll("\\\n", " ") ?? "";
  return [...command.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, double, single, word]) =>
    (double ?? single ?? word ?? "").replace(/\$([A-Z]+)/g, (_, name) => values[name] ?? ""),
  );
}

/** Creates a subscription of the organization `o`, and a Redis user of its readers as in the guide. */
async function givenReader() {
  const subscription = await makeSubscription(server, 2);
  const name = `readers-${subscription.id}-${process.pid}`;
  const rules = readRules({ NAME: name, PASSWORD, ORGANIZATION: "o", SUBSCRIPTION: subscription.id });
  await server.client.call("ACL", ["SETUSER", ...rules]);
  const url = server.url.replace("unix://", `unix://${name}:${PASSWORD}@`);
  const [address] = parseRedisAddresses(url);
  const client = new Redis({ ...address, protocol: 2 });
  return {
    subscription,
    url,
    client,
    /** Returns the commands, keys and users that Redis has denied to the readers. */
    async denied() {
      const entries = (await server.client.call("ACL", ["LOG", "1000"])) as unknown[][];
      return entries.filter((entry) => entry.includes(name));
    },
    async [Symbol.asyncDispose]() {
      client.disconnect();
      await server.client.call("ACL", ["DELUSER", name]);
    },
  };
}

describe("a Redis user with the permissions of the guide", () => {
  it.each([
    false,
    true,
    "key",
  ] as const)("can run a consumer with `ordered: %s`, whose failing events become dead letters", async (ordered) => {
    await using reader = await givenReader();
    const { subscription, url } = reader;
    for (const topic of subscription.topics) await subscription.send(topic, 0, 5);
    const stop = new AbortController();
    const handled: number[] = [];
    const consumer = subscription.consumer<number>({
      redis: url,
      ordered,
      maxAttempts: 2,
      retry: { initialMs: 5, maxMs: 5, factor: 1, jitter: 0 },
      onProblem: () => {},
    });
    const running = consumer.run(
      ({ data }) => {
        if (data === 2) throw new Error("failed");
        handled.push(data as number);
      },
      { signal: stop.signal },
    );
    await until(async () => (await subscription.dead()).length === 2 && handled.length === 8);
    await until(async () => (await subscription.pending()) === 0);
    stop.abort();
    await running;
    expect(await reader.denied()).toEqual([]);
    expect(await server.client.exists(`inlet:sub:${subscription.id}:error`)).toBe(1);
  });

  it("can do nothing else", async () => {
    await using reader = await givenReader();
    const { client, subscription } = reader;
    const [own = ""] = subscription.topics;
    const foreign = "events.other.apps.app.event_received.app.ch.t";
    await server.client.xgroup("CREATE", foreign, subscription.id, "0-0", "MKSTREAM");
    const denied: readonly (readonly string[])[] = [
      ["XREADGROUP", "GROUP", subscription.id, "r", "STREAMS", foreign, ">"],
      ["XRANGE", foreign, "-", "+"],
      ["XACK", foreign, subscription.id, "0-1"],
      ["EVAL", `return redis.call('XRANGE', '${foreign}', '-', '+')`, "1", own],
      ["EVAL", "return redis.call('XRANGE', KEYS[1], '-', '+')", "1", foreign],
      ["XADD", own, "*", "data", "forged"],
      ["XTRIM", own, "MAXLEN", "0"],
      ["DEL", own],
      ["XGROUP", "DESTROY", own, subscription.id],
      ["XGROUP", "SETID", own, subscription.id, "0"],
      ["SADD", `inlet:sub:${subscription.id}`, foreign],
      ["SMEMBERS", "inlet:sub:sub_other"],
      ["GET", "inlet:organizations:over-limit"],
      ["HGETALL", "inlet:{q.o}:b"],
      ["RESTORE", own, "0", "x"],
      ["KEYS", "*"],
      ["SCAN", "0"],
      ["DUMP", own],
      ["FLUSHALL"],
      ["CONFIG", "GET", "*"],
      ["ACL", "LIST"],
      ["MONITOR"],
      ["REPLICAOF", "NO", "ONE"],
      ["DEBUG", "SLEEP", "0"],
      ["PUBLISH", "a", "b"],
      ["CLIENT", "LIST"],
      ["MODULE", "LIST"],
      ["FUNCTION", "LIST"],
    ];
    const results = await Promise.all(
      denied.map(([command = "", ...args]) =>
        client.call(command, args).catch((error: Error) => error.message),
      ),
    );
    const isDenied = (result: unknown) =>
      /^NOPERM|can't access at least one of the keys|not allowed/.test(String(result));
    expect(denied.filter((_, index) => !isDenied(results[index]))).toEqual([]);
    expect(await server.client.xlen(own)).toBe(0);
  });
});
