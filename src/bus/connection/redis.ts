import { setTimeout as delay } from "node:timers/promises";
import type { Cluster } from "ioredis";
import { addressName, parseRedisAddresses, type RedisAddress } from "../../lib/addresses/redis-address.ts";
import { type LuaScript, loadScript } from "../../lib/lua.ts";
import type { Log } from "../../log.ts";
import { RedisUnfitError } from "../errors.ts";
import { type DurabilityDemand, type DurabilityLevel, durabilityProblem } from "./durability.ts";
import {
  askOnce,
  openGeneralConnection,
  type RedisCaller,
  type RedisEndpoint,
} from "./general-connection.ts";
import { type NodeFacts, readNodeFacts, unfitness } from "./node-facts.ts";
import { type RedisState, stateOf } from "./redis-state.ts";
import { openWriteConnection } from "./write-connection.ts";
import { createClusterRouter, createSingleRouter, type WriteRouter } from "./write-router.ts";

const WRITE_TIMEOUT_MS = 3500;
const FIRST_CONTACT_BACKOFF_MS = 250;
const FIRST_CONTACT_TIMEOUT_MS = 3000;
const FIRST_LOOK_MS = 2000;

export interface OpenRedisOptions {
  /** A comma list of `redis://`, `rediss://` or `unix://` addresses. Cluster is detected. */
  readonly url: string;
  readonly log: Log;
  readonly durability: DurabilityLevel;
  readonly durabilityAsserted: boolean;
  /** Ends the wait for the first connection. */
  readonly signal: AbortSignal;
  /** How long a write may take before its outcome counts as unknown; default 3,500. */
  readonly writeTimeoutMs?: number | undefined;
  /** How often the servers are looked at; default 5,000. */
  readonly checkEveryMs?: number;
}

/** One Redis or one Cluster. Reconnects by itself for ever. */
export interface RedisBus extends RedisCaller, AsyncDisposable {
  readonly isCluster: boolean;
  /** For those who need a connection of their own. */
  readonly endpoint: RedisEndpoint;
  /** The state that `/readyz` shows; from memory. */
  state(): RedisState;
  /** The connections that events are written through; only `createPublish` uses them. `state` is theirs. */
  readonly writes: WriteRouter;
  /** The same for large writes: small ones do not stand in line behind their bytes. */
  readonly largeWrites: WriteRouter;
  readonly publishScript: LuaScript;
  readonly demand: DurabilityDemand;
}

/**
 * Connects, and waits for as long as Redis is away until `signal` aborts. A Redis that is loading or a
 * replica for now is no reason to wait: `state` tells.
 *
 * @throws RedisUnfitError on a Redis that is too old, evicts, or is less durable than asked for.
 */
export async function openRedis(options: OpenRedisOptions): Promise<RedisBus> {
  const { log, signal, checkEveryMs = 5000, writeTimeoutMs = WRITE_TIMEOUT_MS } = options;
  const demand: DurabilityDemand = { level: options.durability, asserted: options.durabilityAsserted };
  const addresses = parseRedisAddresses(options.url);
  const publishScript = loadScript(new URL("../publish/publish.lua", import.meta.url));
  const openWrites = (address: RedisAddress) =>
    openWriteConnection({ address, demand, log, writeTimeoutMs, checkEveryMs, scripts: [publishScript] });

  const { address, facts } = await firstContact(addresses, log, signal);
  refuseUnfit(addressName(address), facts, demand);
  await using opening = new AsyncDisposableStack();
  const endpoint: RedisEndpoint = {
    isCluster: facts.isCluster,
    seeds: facts.isCluster ? [address, ...addresses] : [address],
  };
  const general = opening.use(openGeneralConnection(endpoint, log));
  const cluster = general.cluster && (await slotsKnown(general.cluster, signal));
  const openRouter = (): WriteRouter =>
    cluster === undefined
      ? createSingleRouter(openWrites(address))
      : createClusterRouter(cluster, (node) => openWrites({ ...address, ...node }));
  const writes = opening.use(openRouter());
  const largeWrites = opening.use(openRouter());
  const connections = [...writes.connections(), ...largeWrites.connections()];
  await Promise.allSettled(connections.map((connection) => connection.opened(FIRST_LOOK_MS)));
  for (const connection of writes.connections()) {
    if (connection.facts) refuseUnfit(connection.name, connection.facts, demand);
  }
  const open = opening.move();
  return {
    isCluster: facts.isCluster,
    endpoint,
    call: general.call,
    callBuffer: general.callBuffer,
    state: () => stateOf(writes.connections(), demand, facts.isCluster),
    writes,
    largeWrites,
    publishScript,
    demand,
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  };
}

/** The first of the addresses that answers, a master before a replica; asks on until one does. */
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
        const facts = await askOnce(address, FIRST_CONTACT_TIMEOUT_MS, (client) =>
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

function refuseUnfit(name: string, facts: NodeFacts, demand: DurabilityDemand): void {
  const reason = unfitness(facts) ?? durabilityProblem(facts, demand);
  if (reason !== undefined) throw new RedisUnfitError(`${name}: ${reason}`);
}

async function slotsKnown(cluster: Cluster, signal: AbortSignal): Promise<Cluster> {
  while (cluster.status !== "ready") await delay(20, undefined, { signal });
  return cluster;
}
