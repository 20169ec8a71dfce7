import { Cluster, Command, Redis } from "ioredis";
import { UnavailableError } from "../lib/errors.ts";
import type { Log } from "../log.ts";
import type { RedisAddress } from "./redis-address.ts";
import { toBusError } from "./redis-errors.ts";

const COMMAND_TIMEOUT_MS = 4000;
const MAX_BACKOFF_MS = 1000;

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

/** The connection for everything that is not the publishing of events: reads, groups, administration. */
export interface GeneralConnection extends RedisCaller, AsyncDisposable {
  /** The client's slot table; undefined on a single server. */
  readonly cluster: Cluster | undefined;
}

const backoff = (times: number): number =>
  Math.min(50 * 2 ** Math.min(times, 10), MAX_BACKOFF_MS) * (0.75 + Math.random() / 2);

const shared = {
  protocol: 2,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 1,
  connectTimeout: 3000,
  socketTimeout: COMMAND_TIMEOUT_MS,
  maxLoadingRetryTime: 500,
  disconnectTimeout: 1,
  disableClientInfo: true,
  connectionName: "inlet",
} as const;

/** Connects to one server. Commands wait a little while it is away, then fail as UnavailableError. */
export function openSingleConnection(address: RedisAddress, log: Log): GeneralConnection {
  const client = new Redis({ ...address, ...shared, retryStrategy: backoff });
  return overClient(client, undefined, log);
}

/** Connects to a Cluster; the credentials of the first seed serve for all nodes. */
export function openClusterConnection(
  seeds: readonly [RedisAddress, ...RedisAddress[]],
  log: Log,
): GeneralConnection {
  const [{ username, password, tls }] = seeds;
  const client = new Cluster(
    seeds.map(({ host = "127.0.0.1", port = 6379 }) => ({ host, port })),
    {
      clusterRetryStrategy: backoff,
      slotsRefreshTimeout: 2000,
      // Has no default, whatever its documentation says.
      slotsRefreshInterval: 5000,
      redisOptions: {
        ...shared,
        ...(username === undefined ? {} : { username }),
        ...(password === undefined ? {} : { password }),
        ...(tls === undefined ? {} : { tls }),
      },
    },
  );
  return overClient(client, client, log);
}

function overClient(client: Redis | Cluster, cluster: Cluster | undefined, log: Log): GeneralConnection {
  client.on("error", (error: Error) => log.debug({ err: error }, "Redis connection"));

  async function send(
    command: string,
    args: readonly CommandArg[],
    encoding: "utf8" | null,
  ): Promise<unknown> {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => reject(new UnavailableError(`Redis has not answered ${command} within ${COMMAND_TIMEOUT_MS} ms`)),
      COMMAND_TIMEOUT_MS,
    );
    try {
      const sent = client.sendCommand(new Command(command, [...args], { replyEncoding: encoding }));
      return await Promise.race([sent, late]);
    } catch (error) {
      throw toBusError(error);
    } finally {
      clearTimeout(timer);
    }
  }

  return {
    cluster,
    call: (command, args) => send(command, args, "utf8"),
    callBuffer: (command, args) => send(command, args, null),
    async [Symbol.asyncDispose]() {
      client.disconnect();
    },
  };
}
