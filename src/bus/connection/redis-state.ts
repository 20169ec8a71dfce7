import { atLeast, type DurabilityDemand, type DurabilityLevel, heldLevel } from "./durability.ts";
import { MEMORY_ALARM_FRACTION } from "./node-facts.ts";
import type { WriteConnection } from "./write-connection.ts";

/** The state of Redis that `/readyz` shows. */
export interface RedisState {
  /** True when events can be published. */
  readonly ready: boolean;
  /** Why not; one sentence each, for the operator. */
  readonly problems: readonly string[];
  /** The level that holds for acknowledged events: the weakest master's. */
  readonly durability: DurabilityLevel | "unknown";
  readonly version: string | undefined;
  readonly cluster: boolean;
  /** Of `maxmemory` (without it, of the machine's memory), of the fullest master; undefined until known. */
  readonly memoryUsedFraction: number | undefined;
  /** From 85 % on. */
  readonly memoryAlarm: boolean;
}

export function stateOf(
  connections: readonly WriteConnection[],
  demand: DurabilityDemand,
  cluster: boolean,
): RedisState {
  const problems: string[] = [];
  let durability: RedisState["durability"] | undefined;
  let fullest: number | undefined;
  let version: string | undefined;
  for (const { name, problem, facts } of connections) {
    if (problem !== undefined) problems.push(cluster ? `${name}: ${problem}` : problem);
    if (facts === undefined) continue;
    version = facts.version;
    durability = weaker(durability, heldLevel(facts, demand));
    if (facts.memoryUsedFraction !== undefined) fullest = Math.max(fullest ?? 0, facts.memoryUsedFraction);
  }
  if (connections.length === 0) problems.push("no master of the Cluster is known");
  return {
    ready: problems.length === 0,
    problems,
    durability: durability ?? "unknown",
    version,
    cluster,
    memoryUsedFraction: fullest,
    memoryAlarm: fullest !== undefined && fullest >= MEMORY_ALARM_FRACTION,
  };
}

function weaker(
  held: RedisState["durability"] | undefined,
  other: RedisState["durability"],
): RedisState["durability"] {
  if (held === undefined || other === "unknown") return other;
  if (held === "unknown") return held;
  return atLeast(held, other) ? other : held;
}
