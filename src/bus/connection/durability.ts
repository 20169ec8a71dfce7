import type { NodeFacts } from "./node-facts.ts";

/**
 * Failures that an acknowledged write survives, weakest first: `none`, loss of the Redis process (`process`), of the machine
 * (`fsync`), of the machine's disk (`replica`).
 */
export const DURABILITY_LEVELS = ["none", "process", "fsync", "replica"] as const;
export type DurabilityLevel = (typeof DURABILITY_LEVELS)[number];

/** The required level, and whether the operator asserts it if Redis does not show its settings. */
export interface DurabilityDemand {
  readonly level: DurabilityLevel;
  readonly asserted: boolean;
}

/** Commands to wait for after a batch, on the connection that wrote it. */
export interface DurabilityWait {
  /** Whether to send `WAITAOF 1 0`: waits for the append-only file of this server. */
  readonly localFsync: boolean;
  /** Number of replicas for WAIT; 0 for no WAIT. */
  readonly replicas: number;
}

export const atLeast = (held: DurabilityLevel, wanted: DurabilityLevel): boolean =>
  DURABILITY_LEVELS.indexOf(held) >= DURABILITY_LEVELS.indexOf(wanted);

/**
 * Returns the durability of one master if each batch waits as `requiredWait` says. Returns `unknown` if it depends on settings that
 * Redis does not show. Without a wait, `fsync` needs `appendfsync always`, and `replica` is impossible.
 */
export function computeDurability(facts: NodeFacts, demand: DurabilityDemand): DurabilityLevel | "unknown" {
  if (!facts.appendOnly) return "none";
  const wait = requiredWait(facts, demand);
  if (facts.appendFsync !== "always" && !wait.localFsync) {
    return facts.appendFsync === undefined && atLeast(demand.level, "fsync") ? "unknown" : "process";
  }
  return wait.replicas > 0 && facts.connectedReplicas >= wait.replicas ? "replica" : "fsync";
}

/** Returns the waits that the required level needs. Each costs a round trip to the disk or to a replica, so there are no others. */
export function requiredWait(facts: NodeFacts, demand: DurabilityDemand): DurabilityWait {
  return {
    localFsync:
      atLeast(demand.level, "fsync") &&
      facts.appendOnly &&
      facts.appendFsync !== "always" &&
      facts.hasWaitAof,
    replicas: demand.level === "replica" ? 1 : 0,
  };
}

/** Redis settings that each level needs, for error messages. */
const REMEDIES: Readonly<Record<DurabilityLevel, string>> = {
  none: "no setting is needed",
  process: "set `appendonly yes` in Redis",
  fsync: "set `appendonly yes` and `appendfsync always` in Redis",
  replica: "set `appendonly yes` and `appendfsync always` in Redis and give it a replica",
};

/**
 * Returns why a master does not reach the required durability, for the operator. Returns `undefined` if it does, or if it is
 * unknown and the operator asserts it.
 */
export function durabilityProblem(facts: NodeFacts, demand: DurabilityDemand): string | undefined {
  const held = computeDurability(facts, demand);
  if (held === "unknown") {
    if (demand.asserted) return undefined;
    return `durability is unknown because Redis rejects CONFIG GET appendfsync, and "${demand.level}" is required; if Redis is configured for it, set INLET_DURABILITY_ASSERTED=1`;
  }
  return atLeast(held, demand.level)
    ? undefined
    : `durability is "${held}" but "${demand.level}" is required; ${REMEDIES[demand.level]}, or set INLET_DURABILITY=${held}`;
}
