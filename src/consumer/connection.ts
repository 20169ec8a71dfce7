import { Cluster, Redis } from "ioredis";
import { parseRedisAddresses, type RedisAddress } from "../lib/redis-address.ts";

/** A Redis or a Cluster, as a reader needs it. */
export interface Connection extends AsyncDisposable {
  readonly isCluster: boolean;
  readonly call: (command: string, args: readonly (string | number)[]) => Promise<unknown>;
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

/** @throws Error of ioredis where nobody answers, or the address is none. */
export async function connect(addresses: string, onError: (error: unknown) => void): Promise<Connection> {
  const [first, ...others] = parseRedisAddresses(addresses);
  const single = new Redis({ ...OPTIONS, ...first });
  single.on("error", onError);
  try {
    await single.connect();
    if (!/^cluster_enabled:1/m.test(String(await single.info("cluster")))) return asConnection(single, false);
  } catch (error) {
    single.disconnect();
    throw error;
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
    async [Symbol.asyncDispose]() {
      client.disconnect();
    },
  };
}
