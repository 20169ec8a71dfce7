import { atLeast, type DurabilityDemand, type DurabilityLevel, heldLevel } from "./durability.ts";
import { MEMORY_ALARM_FRACTION } from "./node-facts.ts";
import type { WriteConnection } from "./write-connection.ts";

export type RedisState = ReturnType<typeof stateOf>;

/** The state of Redis that `/readyz` shows; problems are a sentence each, for the operator. */
export function stateOf(connections: readonly WriteConnection[], demand: DurabilityDemand, cluster: boolean) {
  const problems: string[] = [];
  let durability: Held | undefined;
  let fullest: number | undefined;
  let version: string | undefined;
  let maxMemoryBytes: number | undefined = 0;
  for (const { name, facts, problem: closed, refusal } of connections) {
    const problem = closed ?? refusal;
    if (problem !== undefined) problems.push(cluster ? `${name}: ${problem}` : problem);
    if (facts === undefined) continue;
    version = facts.version;
    if (facts.maxMemoryBytes === undefined) maxMemoryBytes = undefined;
    else if (maxMemoryBytes !== undefined) maxMemoryBytes += facts.maxMemoryBytes;
    durability = weaker(durability, heldLevel(facts, demand));
    if (facts.memoryUsedFraction !== undefined) fullest = Math.max(fullest ?? 0, facts.memoryUsedFraction);
  }
  if (connections.length === 0) problems.push("no master of the Cluster is known");
  return {
    /** True when events can be published. */
    ready: problems.length === 0,
    problems: problems as readonly string[],
    /** The level that holds for acknowledged events: the weakest master's. */
    durability: durability ?? "unknown",
    version,
    cluster,
    /** Of `maxmemory` (without it, of the machine's memory), of the fullest master; undefined until known. */
    memoryUsedFraction: fullest,
    /** Of all masters together; undefined where one has none, or until known. */
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
