import { atLeast, computeDurability, type DurabilityDemand, type DurabilityLevel } from "./durability.ts";
import { MEMORY_ALARM_FRACTION } from "./node-facts.ts";
import type { WriteConnection } from "./write-connection.ts";

export type RedisState = ReturnType<typeof computeRedisState>;

/** Computes the state of Redis for the readiness endpoint `/readyz`. Each problem is one sentence for the operator. */
export function computeRedisState(
  connections: readonly WriteConnection[],
  demand: DurabilityDemand,
  cluster: boolean,
) {
  const problems: string[] = [];
  let durability: Held | undefined;
  let fullest: number | undefined;
  let version: string | undefined;
  let maxMemoryBytes: number | undefined = 0;
  for (const { name, facts, problem: closed, writeRejection: refusal } of connections) {
    const problem = closed ?? refusal;
    if (problem !== undefined) problems.push(cluster ? `${name}: ${problem}` : problem);
    if (facts === undefined) continue;
    version = facts.version;
    if (facts.maxMemoryBytes === undefined) maxMemoryBytes = undefined;
    else if (maxMemoryBytes !== undefined) maxMemoryBytes += facts.maxMemoryBytes;
    durability = weaker(durability, computeDurability(facts, demand));
    if (facts.memoryUsedFraction !== undefined) fullest = Math.max(fullest ?? 0, facts.memoryUsedFraction);
  }
  if (connections.length === 0) problems.push("No master of the Redis Cluster is known.");
  return {
    ready: problems.length === 0,
    problems: problems as readonly string[],
    /** Durability of stored events. The least durable Redis master determines it. */
    durability: durability ?? "unknown",
    version,
    cluster,
    /** Used share of `maxmemory`, or of the machine's memory if `maxmemory` is not set, on the fullest master. `undefined` until known. */
    memoryUsedFraction: fullest,
    /** Total `maxmemory` of all masters, in bytes. `undefined` if unknown, or if a master has no limit. */
    maxMemoryBytes: maxMemoryBytes === 0 ? undefined : maxMemoryBytes,
    memoryAlarm: fullest !== undefined && fullest >= MEMORY_ALARM_FRACTION,
  };
}

type Held = DurabilityLevel | "unknown";

function weaker(held: Held | undefined, other: Held): Held {
  if (held === undefined || other === "unknown") return other;
  if (held === "unknown") return held;
  return atLeast(held, other) ? other : held;
}
