import type { NodeFacts } from "./node-facts.ts";

/**
 * The loss that an acknowledged write survives, weakest first: none, the process, the machine, the machine's disk.
 */
export const DURABILITY_LEVELS = ["none", "process", "fsync", "replica"] as const;
export type DurabilityLevel = (typeof DURABILITY_LEVELS)[number];

/** The level asked for, and whether the operator vouches for settings that Redis does not show. */
export interface DurabilityDemand {
  readonly level: DurabilityLevel;
  readonly asserted: boolean;
}

/** The waits after a batch, on the connection that wrote it. */
export interface DurabilityWait {
  /** WAITAOF 1 0: the append-only file of this server. */
  readonly localFsync: boolean;
  /** WAIT: how many replicas. */
  readonly replicas: number;
}

export const atLeast = (held: DurabilityLevel, wanted: DurabilityLevel): boolean =>
  DURABILITY_LEVELS.indexOf(held) >= DURABILITY_LEVELS.indexOf(wanted);

/**
 * The level that one master holds when each batch waits as `waitFor` says. `unknown` where it depends on
 * settings that may not be read. Without a wait Redis holds `fsync` by `appendfsync always` alone, and never
 * `replica`.
 */
export function heldLevel(facts: NodeFacts, demand: DurabilityDemand): DurabilityLevel | "unknown" {
  if (!facts.appendOnly) return "none";
  const wait = waitFor(facts, demand);
  if (facts.appendFsync !== "always" && !wait.localFsync) {
    return facts.appendFsync === undefined && atLeast(demand.level, "fsync") ? "unknown" : "process";
  }
  return wait.replicas > 0 && facts.connectedReplicas >= wait.replicas ? "replica" : "fsync";
}

/** Waits are made for what is asked for only: each costs a round trip to the disk or to a replica. */
export function waitFor(facts: NodeFacts, demand: DurabilityDemand): DurabilityWait {
  return {
    localFsync:
      atLeast(demand.level, "fsync") &&
      facts.appendOnly &&
      facts.appendFsync !== "always" &&
      facts.hasWaitAof,
    replicas: demand.level === "replica" ? 1 : 0,
  };
}

/** The part of the demand that Redis cannot meet. */
const REMEDIES: Readonly<Record<DurabilityLevel, string>> = {
  none: "nothing is needed",
  process: "set `appendonly yes` in Redis",
  fsync: "set `appendonly yes` and `appendfsync always` in Redis",
  replica: "set `appendonly yes` and `appendfsync always` in Redis and give it a replica",
};

/**
 * Why this master does not hold what is asked for; undefined where it does, or where the operator vouches for
 * it.
 */
export function durabilityProblem(facts: NodeFacts, demand: DurabilityDemand): string | undefined {
  const held = heldLevel(facts, demand);
  if (held === "unknown") {
    if (demand.asserted) return undefined;
    return `durability is unknown (CONFIG GET appendfsync is refused) and "${demand.level}" is asked for; INLET_DURABILITY_ASSERTED=1 vouches for it`;
  }
  return atLeast(held, demand.level)
    ? undefined
    : `durability is "${held}" and "${demand.level}" is asked for; ${REMEDIES[demand.level]}, or INLET_DURABILITY=${held} asks for less`;
}
