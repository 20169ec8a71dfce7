import { askBroker, type RedisDatabase } from "./broker.ts";
import { openClient, type RedisServer } from "./redis.ts";

/** A Redis database for one test. */
export type TestRedis = Pick<RedisServer, "url" | "client" | typeof Symbol.asyncDispose>;

/** Opens a database of the run's Redis. Tests that stop, restart, configure or measure a server use `startRedis`. */
export async function createTestRedis(): Promise<TestRedis> {
  const { socketPath, database } = await askBroker<RedisDatabase>("GET", "/redis");
  const client = await openClient(socketPath, database);
  return {
    // The Unix socket avoids the network round trip, the largest part of a command's cost.
    url: `unix://${socketPath}?db=${database}`,
    client,
    async [Symbol.asyncDispose]() {
      await client.flushdb();
      client.disconnect();
      await askBroker("DELETE", `/redis/${database}`);
    },
  };
}
