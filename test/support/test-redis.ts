import { askBroker, type RedisDatabase } from "./broker.ts";
import { openClient, type RedisServer } from "./redis.ts";

/** A Redis that no other test sees. */
export type TestRedis = Pick<RedisServer, "url" | "client" | typeof Symbol.asyncDispose>;

/** A database of the run's Redis. For tests that stop, restart, set up or measure a server: `startRedis`. */
export async function createTestRedis(): Promise<TestRedis> {
  const { port, database } = await askBroker<RedisDatabase>("GET", "/redis");
  const client = await openClient(port, database);
  return {
    url: `redis://127.0.0.1:${port}/${database}`,
    client,
    async [Symbol.asyncDispose]() {
      await client.flushdb();
      client.disconnect();
      await askBroker("DELETE", `/redis/${database}`);
    },
  };
}
