import type { Cluster } from "ioredis";
import type { RedisAddress } from "../../lib/addresses/redis-address.ts";
import { UnavailableError } from "../../lib/errors.ts";
import { replyCode } from "./redis-errors.ts";
import type { WriteConnection } from "./write-connection.ts";

const RECONCILE_MS = 1000;

/** Finds the master that a write goes to. */
export interface WriteRouter extends AsyncDisposable {
  /** True where keys of different slots cannot be written together. */
  readonly isSlotted: boolean;
  /**
   * The connection to a slot's master.
   *
   * @throws UnavailableError while nobody serves the slot.
   */
  connectionFor(slot: number): WriteConnection;
  /** The connection that a MOVED or ASK reply points to, once open; undefined for any other error. */
  redirect(error: unknown): Promise<{ connection: WriteConnection; isAsking: boolean } | undefined>;
  /** To every master. */
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
 * Follows the slot table that ioredis keeps. Writes do not go through its Cluster client: it would repeat
 * them by itself, and WAIT must follow a write on the same connection.
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

  /**
   * Opens connections to new masters, so that their state is known, and closes those to nodes that serve
   * nothing.
   */
  function reconcile() {
    // A dead master answers no MOVED: who took over is to be asked for.
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
      if (node === undefined) throw new UnavailableError(`no master serves slot ${slot}`);
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
      await connection.opened(1000);
      return { connection, isAsking: code === "ASK" };
    },
    connections: () => [...byNode.values()],
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await Promise.all([...byNode.values()].map((connection) => connection[Symbol.asyncDispose]()));
    },
  };
}
