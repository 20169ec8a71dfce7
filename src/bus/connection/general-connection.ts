import { Cluster, Command, Redis } from "ioredis";
import type { RedisAddress } from "../../lib/addresses/redis-address.ts";
import { withTimeout } from "../../lib/wait.ts";
import type { Log } from "../../log.ts";
import { toBusError } from "./redis-errors.ts";

const COMMAND_TIMEOUT_MS = 4_000;

export type CommandArg = string | number | Buffer;

export interface RedisCaller {
  /**
   * Sends one command and returns its reply in RESP2 form.
   *
   * @throws UnavailableError if Redis is unreachable, loading, read-only, full or slow
   */
  call(command: string, args: readonly CommandArg[]): Promise<unknown>;
  /** Like `call`, but returns strings as Buffers. */
  callBuffer(command: string, args: readonly CommandArg[]): Promise<unknown>;
}

export interface RedisEndpoint {
  readonly isCluster: boolean;
  /** The Redis server, or the Cluster nodes to contact first. The credentials of the first address apply to all nodes. */
  readonly seeds: readonly [RedisAddress, ...RedisAddress[]];
  /** Maximum time to wait for a reply, in ms. Default: 4,000. */
  readonly commandTimeoutMs?: number | undefined;
}

export const commandTimeoutOf = ({ commandTimeoutMs = COMMAND_TIMEOUT_MS }: RedisEndpoint): number =>
  commandTimeoutMs;

/** ioredis options that a dedicated client can override. */
export interface ClientOptions {
  readonly maxRetriesPerRequest?: number | null;
  readonly autoResendUnfulfilledCommands?: boolean;
  readonly socketTimeout?: number;
}

/** Redis connection for everything except publishing events: reads, consumer groups and administration. */
export interface GeneralConnection extends RedisCaller, AsyncDisposable {
  /** The Cluster client; `undefined` on a single server. */
  readonly cluster: Cluster | undefined;
}

/** Returns the delay before reconnect attempt `times`, in ms. It doubles from 100 ms to one second, with ±25 % jitter. */
export const reconnectMs = (times: number): number =>
  Math.min(50 * 2 ** Math.min(times, 10), 1000) * (0.75 + Math.random() / 2);

export const CLIENT_OPTIONS = {
  protocol: 2,
  autoResendUnfulfilledCommands: false,
  connectTimeout: 3000,
  disconnectTimeout: 1,
  disableClientInfo: true,
} as const;

const SHARED_OPTIONS = {
  ...CLIENT_OPTIONS,
  maxRetriesPerRequest: 1,
  maxLoadingRetryTime: 500,
  connectionName: "inlet",
} as const;

/** Opens the connection. While Redis is unreachable, calls wait briefly and then fail with UnavailableError. */
export function openGeneralConnection(endpoint: RedisEndpoint, log: Log): GeneralConnection {
  const client = openClient(endpoint, {});
  const timeoutMs = commandTimeoutOf(endpoint);
  client.on("error", (error: Error) =>
    log.debug({ event: "redis.error", err: error }, "Redis connection error"),
  );

  async function send(command: string, args: readonly CommandArg[], encoding: "utf8" | null) {
    try {
      const sent = client.sendCommand(new Command(command, [...args], { replyEncoding: encoding }));
      const late = `Redis did not reply to ${command} within ${timeoutMs} ms`;
      return await withTimeout(timeoutMs, sent as Promise<unknown>, late);
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
 * Runs `use` with a temporary client, and disconnects the client afterwards.
 *
 * @throws the original connection error, because ioredis reports it only as an event and rejects with a less specific error
 */
export async function withTemporaryClient<T>(
  address: RedisAddress,
  timeoutMs: number,
  use: (client: Redis) => Promise<T>,
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
    return await use(client);
  } catch (error) {
    throw failure ?? error;
  } finally {
    client.disconnect();
  }
}

/** Opens a separate client that reconnects forever. The caller must handle its `error` events and disconnect it. */
export function openClient(endpoint: RedisEndpoint, options: ClientOptions): Redis | Cluster {
  const { isCluster, seeds } = endpoint;
  const [first] = seeds;
  const shared = { ...SHARED_OPTIONS, socketTimeout: commandTimeoutOf(endpoint), ...options };
  if (!isCluster) return new Redis({ ...first, ...shared, retryStrategy: reconnectMs });
  const { username, password, tls } = first;
  return new Cluster(
    seeds.map(({ host = "127.0.0.1", port = 6379 }) => ({ host, port })),
    {
      clusterRetryStrategy: reconnectMs,
      slotsRefreshTimeout: 2000,
      // Must be set here, because ioredis does not apply the default that it documents.
      slotsRefreshInterval: 5000,
      redisOptions: {
        ...shared,
        ...(username === undefined ? {} : { username }),
        ...(password === undefined ? {} : { password }),
        ...(tls === undefined ? {} : { tls }),
      },
    },
  );
}
