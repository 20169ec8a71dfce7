import type { Cluster } from "ioredis";
import type { RedisAddress } from "../../lib/addresses/redis-address.ts";
import { UnavailableError } from "../../lib/errors.ts";
import { replyCode } from "./redis-errors.ts";
import type { WriteConnection } from "./write-connection.ts";

const RECONCILE_MS = 1000;

/** Chooses the Redis connection for a write: that to the master of its Cluster slot. */
export interface WriteRouter extends AsyncDisposable {
  /** Whether Redis is a Cluster, so that all keys of one call must be in the same slot. */
  readonly isSlotted: boolean;
  /**
   * Returns the connection to the master of a Cluster slot.
   *
   * @throws UnavailableError while the slot has no master
   */
  connectionFor(slot: number): WriteConnection;
  /** Resolves with an open connection to the server that a MOVED or ASK error names. Resolves with `undefined` for any other error. */
  redirect(error: unknown): Promise<{ connection: WriteConnection; isAsking: boolean } | undefined>;
  connections(): readonly WriteConnection[];
}

export function createSingleRouter(connection: WriteConnection): WriteRouter {
  return {
    isSlotted: false,
    connectionFor: () => connection,
    redirect: async () => undefined,
    connections: () => [connection],
    [Symbol.asyncDispose]: () => connection[Symbol.asyncDispose](),
  };
}

/**
 * Routes writes with the slot table of ioredis, but not with its Cluster client. That client resends commands, and may send WAIT on
 * a different connection than the write.
 */
export function createClusterRouter(
  cluster: Cluster,
  open: (address: Pick<RedisAddress, "host" | "port">) => WriteConnection,
): WriteRouter {
  const byNode = new Map<string, WriteConnection>();

  function connectionTo(node: string): WriteConnection {
    let connection = byNode.get(node);
    if (connection === undefined) {
      const colon = node.lastIndexOf(":");
      connection = open({ host: node.slice(0, colon), port: Number(node.slice(colon + 1)) });
      byNode.set(node, connection);
    }
    return connection;
  }

  /** Connects to new masters before the first write, so that their state is known. Disconnects from nodes that are no longer masters. */
  function reconcile() {
    // Ask the Cluster for a new master, because a dead master cannot reply with MOVED.
    if ([...byNode.values()].some(({ problem }) => problem !== undefined)) cluster.refreshSlotsCache();
    const masters = new Set<string>();
    for (const [master] of Object.values(cluster.slots)) if (master !== undefined) masters.add(master);
    if (masters.size === 0) return;
    for (const node of masters) connectionTo(node);
    for (const [node, connection] of byNode) {
      if (masters.has(node)) continue;
      byNode.delete(node);
      void connection[Symbol.asyncDispose]();
    }
  }
  reconcile();
  const timer = setInterval(reconcile, RECONCILE_MS);
  timer.unref();

  return {
    isSlotted: true,
    connectionFor(slot) {
      const node = cluster.slots[slot]?.[0];
      if (node === undefined)
        throw new UnavailableError(`No master of the Redis Cluster serves slot ${slot}.`);
      return connectionTo(node);
    },
    async redirect(error) {
      const cause = error instanceof UnavailableError ? error.cause : error;
      const code = replyCode(cause);
      if ((code !== "MOVED" && code !== "ASK") || !(cause instanceof Error)) return undefined;
      if (code === "MOVED") cluster.refreshSlotsCache();
      const node = cause.message.split(" ")[2];
      if (node === undefined || node.startsWith(":")) return undefined;
      const connection = connectionTo(node);
      await connection.waitUntilOpen(1000);
      return { connection, isAsking: code === "ASK" };
    },
    connections: () => [...byNode.values()],
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await Promise.all([...byNode.values()].map((connection) => connection[Symbol.asyncDispose]()));
    },
  };
}
