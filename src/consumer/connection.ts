import { Cluster, Redis } from "ioredis";
import { addressName, parseRedisAddresses, type RedisAddress } from "../lib/addresses/redis-address.ts";

export interface Connection {
  readonly isCluster: boolean;
  readonly call: (command: string, args: readonly (string | number)[]) => Promise<unknown>;
  readonly close: () => void;
}

const OPTIONS = {
  protocol: 2,
  lazyConnect: true,
  connectTimeout: 5_000,
  commandTimeout: 10_000,
  maxRetriesPerRequest: 1,
  autoResendUnfulfilledCommands: false,
  retryStrategy: (times: number) => Math.min(50 * 2 ** Math.min(times, 6), 2_000),
} as const;

/**
 * Connects to Redis and detects whether it is a Cluster.
 *
 * @throws Error that names an invalid or unreachable address; its cause is the error of ioredis
 */
export async function connect(addresses: string, onError: (error: unknown) => void): Promise<Connection> {
  const [first, ...others] = parseRedisAddresses(addresses);
  const single = new Redis({ ...OPTIONS, ...first });
  let last: unknown;
  single.on("error", (error) => {
    last = error;
    onError(error);
  });
  try {
    await single.connect();
    if (!/^cluster_enabled:1/m.test(String(await single.info("cluster")))) return asConnection(single, false);
  } catch (error) {
    single.disconnect();
    // Prefer the error from the error event, because ioredis rejects only with "Connection is closed".
    const cause = last ?? error;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`Redis at ${addressName(first)} cannot be reached: ${reason}`, { cause });
  }
  single.disconnect();
  const { host: _, port: __, path: ___, db: ____, ...credentials } = first;
  const cluster = new Cluster([first, ...others].map(nodeOf), {
    redisOptions: { ...OPTIONS, ...credentials },
    clusterRetryStrategy: OPTIONS.retryStrategy,
  });
  cluster.on("error", onError);
  return asConnection(cluster, true);
}

const nodeOf = ({ host = "127.0.0.1", port = 6379 }: RedisAddress) => ({ host, port });

function asConnection(client: Redis | Cluster, isCluster: boolean): Connection {
  return {
    isCluster,
    call: (command, args) => client.call(command, args.map(String)),
    close: () => client.disconnect(),
  };
}
