import { Cluster, type Redis } from "ioredis";
import { type Consumer, type ConsumerOptions, createConsumer } from "../../src/consumer/consumer.ts";
import { deadLettersKey } from "../../src/event/subscription-keys.ts";
import { startRedisCluster } from "../support/redis.ts";
import { createTestRedis } from "../support/test-redis.ts";

/** A database of the shared test Redis, or a Cluster of three masters with `INLET_TEST_REDIS=cluster`. */
export interface TestRedis extends AsyncDisposable {
  readonly url: string;
  readonly client: Redis | Cluster;
}

export async function startTestRedis(): Promise<TestRedis> {
  if (process.env.INLET_TEST_REDIS !== "cluster") return createTestRedis();
  const cluster = await startRedisCluster();
  const nodes = cluster.masters.map(({ port }) => ({ host: "127.0.0.1", port }));
  const client = new Cluster(nodes, { redisOptions: { protocol: 2 } });
  return {
    url: cluster.url,
    client,
    async [Symbol.asyncDispose]() {
      client.disconnect();
      await cluster[Symbol.asyncDispose]();
    },
  };
}

/** A subscription with the Redis keys that the gateway would write. */
export interface TestSubscription {
  readonly id: string;
  readonly topics: readonly string[];
  readonly consumer: <T>(options?: Partial<ConsumerOptions>) => Consumer<T>;
  readonly add: (topic: string) => Promise<void>;
  /** Appends events with the data 0, 1, 2 … to a topic. `keyOf` returns their `partitionkey`. */
  readonly send: (
    topic: string,
    from: number,
    to: number,
    keyOf?: (data: number) => string | undefined,
  ) => Promise<void>;
  /** Returns whether a reader is blocked in Redis, waiting for new events. */
  readonly isAwaited: () => Promise<boolean>;
  /** Returns the number of delivered but unacknowledged entries. */
  readonly pending: () => Promise<number>;
  /** Returns the fields of the dead letters as objects. */
  readonly dead: () => Promise<readonly Record<string, string>[]>;
}

/** A long timeout, so that a slow machine never makes a reader look dead. */
export const PATIENT_MS = 60_000;

let made = 0;

export async function makeSubscription(
  { client, url }: Pick<TestRedis, "url" | "client">,
  topicCount = 1,
): Promise<TestSubscription> {
  const id = `sub_${++made}`;
  const topics: string[] = [];
  const add = async (topic: string): Promise<void> => {
    await client.xgroup("CREATE", topic, id, "0-0", "MKSTREAM");
    await client.sadd(`inlet:sub:${id}`, topic);
    topics.push(topic);
  };
  for (let i = 0; i < topicCount; i++) await add(`events.o.apps.app.event_received.${id}.ch.t${i}`);
  return {
    id,
    topics,
    add,
    consumer: (options) =>
      createConsumer({ redis: url, subscription: id, deadAfterMs: PATIENT_MS, ...options }),
    async send(topic, from, to, keyOf = () => undefined) {
      const sent = Array.from({ length: to - from }, (_, i) => {
        const attributes = ["specversion", "1.0", "id", `${topic}#${from + i}`, "source", "/s", "type", "t"];
        const data = ["datacontenttype", "application/json", "data", String(from + i)];
        const key = keyOf(from + i);
        return client.xadd(
          topic,
          "*",
          ...attributes,
          ...data,
          ...(key === undefined ? [] : ["partitionkey", key]),
        );
      });
      await Promise.all(sent);
    },
    async isAwaited() {
      const nodes = client instanceof Cluster ? client.nodes("master") : [client];
      const lists = await Promise.all(nodes.map((node) => node.client("LIST")));
      // Other tests use other databases of the same Redis.
      const database = ` db=${(client instanceof Cluster ? undefined : client.options.db) ?? 0} `;
      const lines = lists.flatMap((list) => String(list).split("\n"));
      return lines.some((line) => line.includes(database) && / flags=\w*b.* cmd=xreadgroup/.test(line));
    },
    async pending() {
      const counts = await Promise.all(topics.map((topic) => client.xpending(topic, id)));
      return counts.reduce((sum, [count]) => sum + Number(count), 0);
    },
    async dead() {
      const streams = await Promise.all(
        topics.map((topic) => client.xrange(deadLettersKey(topic, id), "-", "+")),
      );
      return streams.flat().map(([, fields]) => {
        const names = fields.filter((_, at) => at % 2 === 0);
        return Object.fromEntries(names.map((name, at) => [name, fields[2 * at + 1] ?? ""]));
      });
    },
  };
}
