import { Cluster, Command, Redis } from "ioredis";
import type { RedisAddress } from "../../lib/addresses/redis-address.ts";
import { withTimeout } from "../../lib/wait.ts";
import type { Log } from "../../log.ts";
import { toBusError } from "./redis-errors.ts";

const COMMAND_TIMEOUT_MS = 4000;

export type CommandArg = string | number | Buffer;

export interface RedisCaller {
  /**
   * One command; the reply in RESP2's shapes.
   *
   * @throws UnavailableError when Redis is away, loading, read-only, full or slow.
   */
  call(command: string, args: readonly CommandArg[]): Promise<unknown>;
  /** As `call`, with the strings of the reply as Buffers. */
  callBuffer(command: string, args: readonly CommandArg[]): Promise<unknown>;
}

/** Which Redis it is: all that opening another connection to it takes. */
export interface RedisEndpoint {
  readonly isCluster: boolean;
  /** The server, or nodes to begin with; the credentials of the first serve for all. */
  readonly seeds: readonly [RedisAddress, ...RedisAddress[]];
}

/** How a client of its own differs from the general connection; see `RedisOptions` of ioredis. */
export interface ClientOptions {
  readonly maxRetriesPerRequest?: number | null;
  readonly autoResendUnfulfilledCommands?: boolean;
  readonly socketTimeout?: number;
}

/** The connection for everything that is not the publishing of events: reads, groups, administration. */
export interface GeneralConnection extends RedisCaller, AsyncDisposable {
  /** The client's slot table; undefined on a single server. */
  readonly cluster: Cluster | undefined;
}

/** From 100 ms, doubled, to a second, a quarter of it at random. */
export const reconnectMs = (times: number): number =>
  Math.min(50 * 2 ** Math.min(times, 10), 1000) * (0.75 + Math.random() / 2);

/** Of every connection that we make. */
export const CLIENT_OPTIONS = {
  protocol: 2,
  autoResendUnfulfilledCommands: false,
  connectTimeout: 3000,
  disconnectTimeout: 1,
  disableClientInfo: true,
} as const;

const shared = {
  ...CLIENT_OPTIONS,
  maxRetriesPerRequest: 1,
  socketTimeout: COMMAND_TIMEOUT_MS,
  maxLoadingRetryTime: 500,
  connectionName: "inlet",
} as const;

/** Connects to one server or to a Cluster. Commands wait a little while it is away, then fail as UnavailableError. */
export function openGeneralConnection(endpoint: RedisEndpoint, log: Log): GeneralConnection {
  const client = openClient(endpoint, {});
  client.on("error", (error: Error) =>
    log.debug({ event: "redis.error", err: error }, "an error of a Redis connection"),
  );

  async function send(command: string, args: readonly CommandArg[], encoding: "utf8" | null) {
    try {
      const sent = client.sendCommand(new Command(command, [...args], { replyEncoding: encoding }));
      const late = `Redis has not answered ${command} within ${COMMAND_TIMEOUT_MS} ms`;
      return await withTimeout(COMMAND_TIMEOUT_MS, sent as Promise<unknown>, late);
    } catch (error) {
      throw toBusError(error);
    }
  }

  return {
    cluster: client instanceof Cluster ? client : undefined,
    call: (command, args) => send(command, args, "utf8"),
    callBuffer: (command, args) => send(command, args, null),
    async [Symbol.asyncDispose]() {
      client.disconnect();
    },
  };
}

/**
 * Connects once, asks, and disconnects.
 *
 * @throws the error of the connection, which ioredis tells by an event, before the one by which it rejects
 */
export async function askOnce<T>(
  address: RedisAddress,
  timeoutMs: number,
  ask: (client: Redis) => Promise<T>,
): Promise<T> {
  const client = new Redis({
    ...address,
    ...CLIENT_OPTIONS,
    lazyConnect: true,
    enableReadyCheck: false,
    retryStrategy: null,
    connectTimeout: timeoutMs,
    commandTimeout: timeoutMs,
  });
  let failure: unknown;
  client.on("error", (error) => {
    failure ??= error;
  });
  try {
    await client.connect();
    return await ask(client);
  } catch (error) {
    throw failure ?? error;
  } finally {
    client.disconnect();
  }
}

/** A client of its own that reconnects for ever; its opener listens to its errors and disconnects it. */
export function openClient({ isCluster, seeds }: RedisEndpoint, options: ClientOptions): Redis | Cluster {
  const [first] = seeds;
  if (!isCluster) return new Redis({ ...first, ...shared, ...options, retryStrategy: reconnectMs });
  const { username, password, tls } = first;
  return new Cluster(
    seeds.map(({ host = "127.0.0.1", port = 6379 }) => ({ host, port })),
    {
      clusterRetryStrategy: reconnectMs,
      slotsRefreshTimeout: 2000,
      // Has no default, whatever its documentation says.
      slotsRefreshInterval: 5000,
      redisOptions: {
        ...shared,
        ...options,
        ...(username === undefined ? {} : { username }),
        ...(password === undefined ? {} : { password }),
        ...(tls === undefined ? {} : { tls }),
      },
    },
  );
}
