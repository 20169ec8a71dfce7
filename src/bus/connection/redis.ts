import { setTimeout as delay } from "node:timers/promises";
import type { Cluster } from "ioredis";
import { addressName, parseRedisAddresses, type RedisAddress } from "../../lib/addresses/redis-address.ts";
import { type LuaScript, loadScript } from "../../lib/lua.ts";
import type { Log } from "../../log.ts";
import { RedisUnfitError } from "../errors.ts";
import { type DurabilityDemand, type DurabilityLevel, durabilityProblem } from "./durability.ts";
import {
  openGeneralConnection,
  type RedisCaller,
  type RedisEndpoint,
  withTemporaryClient,
} from "./general-connection.ts";
import { findUnfitReason, type NodeFacts, readNodeFacts } from "./node-facts.ts";
import { computeRedisState, type RedisState } from "./redis-state.ts";
import { openWriteConnection } from "./write-connection.ts";
import { createClusterRouter, createSingleRouter, type WriteRouter } from "./write-router.ts";

const WRITE_TIMEOUT_MS = 3500;
const FIRST_CONTACT_BACKOFF_MS = 250;
const FIRST_CONTACT_TIMEOUT_MS = 3000;
const FIRST_CHECK_MS = 2000;

export interface OpenRedisOptions {
  /** One or more Redis addresses, separated by commas: `redis://`, `rediss://` or `unix://`. A Cluster is detected automatically. */
  readonly url: string;
  readonly log: Log;
  readonly durability: DurabilityLevel;
  readonly durabilityAsserted: boolean;
  /** Cancels the wait for the first connection. */
  readonly signal: AbortSignal;
  /** Maximum time to wait for a write, in ms. After it, the outcome of the write is unknown. Default: 3,500. */
  readonly writeTimeoutMs?: number | undefined;
  /** Maximum time to wait for the reply to any other command, in ms. Default: 4,000. */
  readonly commandTimeoutMs?: number | undefined;
  /** Interval between checks of the servers. Default: 5,000. */
  readonly checkEveryMs?: number;
}

/** All connections to one Redis server or Cluster. They reconnect forever. */
export interface RedisBus extends RedisCaller, AsyncDisposable {
  readonly isCluster: boolean;
  readonly endpoint: RedisEndpoint;
  /** Returns the last known state of Redis for `/readyz`, without asking Redis. */
  state(): RedisState;
  /** Connections for publishing events. Only `createPublish` uses them, and `state()` reports on them. */
  readonly writes: WriteRouter;
  /** Separate connections for large writes, so that small writes do not wait behind large ones. */
  readonly largeWrites: WriteRouter;
  readonly publishScript: LuaScript;
}

/**
 * Connects to Redis, and retries until `signal` aborts. Also resolves if Redis is loading its data or is a replica, which `state()`
 * then reports.
 *
 * @throws RedisUnfitError if Redis is too old, evicts keys, or is less durable than required
 */
export async function openRedis(options: OpenRedisOptions): Promise<RedisBus> {
  const { log, signal, checkEveryMs = 5000, writeTimeoutMs = WRITE_TIMEOUT_MS } = options;
  const demand: DurabilityDemand = { level: options.durability, asserted: options.durabilityAsserted };
  const addresses = parseRedisAddresses(options.url);
  const publishScript = loadScript(new URL("../publish/publish.lua", import.meta.url));
  const openWrites = (address: RedisAddress) =>
    openWriteConnection({ address, demand, log, writeTimeoutMs, checkEveryMs, scripts: [publishScript] });

  const { address, facts } = await firstContact(addresses, log, signal);
  assertFit(addressName(address), facts, demand);
  await using opening = new AsyncDisposableStack();
  const endpoint: RedisEndpoint = {
    isCluster: facts.isCluster,
    seeds: facts.isCluster ? [address, ...addresses] : [address],
    commandTimeoutMs: options.commandTimeoutMs,
  };
  const general = opening.use(openGeneralConnection(endpoint, log));
  const cluster = general.cluster && (await waitForSlots(general.cluster, signal));
  const openRouter = (): WriteRouter =>
    cluster === undefined
      ? createSingleRouter(openWrites(address))
      : createClusterRouter(cluster, (node) => openWrites({ ...address, ...node }));
  const writes = opening.use(openRouter());
  const largeWrites = opening.use(openRouter());
  const connections = [...writes.connections(), ...largeWrites.connections()];
  await Promise.allSettled(connections.map((connection) => connection.waitUntilOpen(FIRST_CHECK_MS)));
  for (const connection of writes.connections()) {
    if (connection.facts) assertFit(connection.name, connection.facts, demand);
  }
  const open = opening.move();
  return {
    isCluster: facts.isCluster,
    endpoint,
    call: general.call,
    callBuffer: general.callBuffer,
    state: () => computeRedisState(writes.connections(), demand, facts.isCluster),
    writes,
    largeWrites,
    publishScript,
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  };
}

/** Returns the first address of a master, or of a replica if there is no master. Retries until one address replies. */
async function firstContact(
  addresses: readonly RedisAddress[],
  log: Log,
  signal: AbortSignal,
): Promise<{ address: RedisAddress; facts: NodeFacts }> {
  for (let attempt = 0; ; attempt++) {
    signal.throwIfAborted();
    let replica: { address: RedisAddress; facts: NodeFacts } | undefined;
    for (const address of addresses) {
      try {
        const facts = await withTemporaryClient(address, FIRST_CONTACT_TIMEOUT_MS, (client) =>
          readNodeFacts((command, args) => client.call(command, ...args)),
        );
        if (facts.isCluster || !facts.isReplica) return { address, facts };
        replica ??= { address, facts };
      } catch (error) {
        if (attempt % 20 === 0)
          log.warn({ event: "redis.awaited", redis: addressName(address), err: error }, "waiting for Redis");
      }
    }
    if (replica !== undefined) return replica;
    await delay(FIRST_CONTACT_BACKOFF_MS, undefined, { signal });
  }
}

function assertFit(name: string, facts: NodeFacts, demand: DurabilityDemand): void {
  const reason = findUnfitReason(facts) ?? durabilityProblem(facts, demand);
  if (reason !== undefined) throw new RedisUnfitError(`${name}: ${reason}`);
}

async function waitForSlots(cluster: Cluster, signal: AbortSignal): Promise<Cluster> {
  while (cluster.status !== "ready") await delay(20, undefined, { signal });
  return cluster;
}
