import { askBroker, type RedisDatabase } from "./broker.ts";
import { openClient, type RedisServer } from "./redis.ts";

/** A Redis that no other test sees. */
export type TestRedis = Pick<RedisServer, "url" | "client" | typeof Symbol.asyncDispose>;

/** A database of the run's Redis. For tests that stop, restart, set up or measure a server: `startRedis`. */
export async function createTestRedis(): Promise<TestRedis> {
  const { socketPath, database } = await askBroker<RedisDatabase>("GET", "/redis");
  const client = await openClient(socketPath, database);
  return {
    // Most of what a command costs is its way over the network.
    url: `unix://${socketPath}?db=${database}`,
    client,
    async [Symbol.asyncDispose]() {
      await client.flushdb();
      client.disconnect();
      await askBroker("DELETE", `/redis/${database}`);
    },
  };
}
