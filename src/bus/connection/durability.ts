import type { NodeFacts } from "./node-facts.ts";

/**
 * Durability levels, weakest first. Acknowledged writes survive no failure (`none`), a crash of the Redis process (`process`), a crash of
 * the machine (`fsync`), or the loss of its disk (`replica`).
 */
export const DURABILITY_LEVELS = ["none", "process", "fsync", "replica"] as const;
export type DurabilityLevel = (typeof DURABILITY_LEVELS)[number];

/** `asserted` means that the operator vouches for `level` if Redis does not reveal its settings. */
export interface DurabilityDemand {
  readonly level: DurabilityLevel;
  readonly asserted: boolean;
}

/** Commands sent after a batch, on the same connection, to confirm that it is durable. */
export interface DurabilityWait {
  /** Whether to send `WAITAOF 1 0`, which waits until this server has synced its append-only file to disk. */
  readonly localFsync: boolean;
  /** Number of replicas that must confirm the batch (`WAIT`); 0 to send no WAIT. */
  readonly replicas: number;
}

export const atLeast = (held: DurabilityLevel, wanted: DurabilityLevel): boolean =>
  DURABILITY_LEVELS.indexOf(held) >= DURABILITY_LEVELS.indexOf(wanted);

/**
 * Returns the durability of one master, assuming that the commands from `requiredWait` follow each batch. Returns `unknown` if it depends
 * on settings that Redis does not reveal. Without these commands, `fsync` needs `appendfsync always`, and `replica` is impossible.
 */
export function computeDurability(facts: NodeFacts, demand: DurabilityDemand): DurabilityLevel | "unknown" {
  if (!facts.appendOnly) return "none";
  const wait = requiredWait(facts, demand);
  if (facts.appendFsync !== "always" && !wait.localFsync) {
    return facts.appendFsync === undefined && atLeast(demand.level, "fsync") ? "unknown" : "process";
  }
  return wait.replicas > 0 && facts.connectedReplicas >= wait.replicas ? "replica" : "fsync";
}

/** Returns only the waits that the required level needs, because each one costs a round trip to the disk or to a replica. */
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

const REMEDIES: Readonly<Record<DurabilityLevel, string>> = {
  none: "no setting is needed",
  process: "set `appendonly yes` in Redis",
  fsync: "set `appendonly yes` and `appendfsync always` in Redis",
  replica: "set `appendonly yes` and `appendfsync always` in Redis and add a replica",
};

/**
 * Returns a message that tells the operator why a master does not reach the required durability. Returns `undefined` if it does, or if its
 * durability is unknown and the operator asserts the level.
 */
export function durabilityProblem(facts: NodeFacts, demand: DurabilityDemand): string | undefined {
  const held = computeDurability(facts, demand);
  if (held === "unknown") {
    if (demand.asserted) return undefined;
    return `the durability of Redis is unknown, because it rejects CONFIG GET appendfsync, but "${demand.level}" is required; if Redis is configured for "${demand.level}", set INLET_DURABILITY_ASSERTED=1`;
  }
  return atLeast(held, demand.level)
    ? undefined
    : `the durability of Redis is "${held}", but "${demand.level}" is required; ${REMEDIES[demand.level]}, or set INLET_DURABILITY=${held}`;
}
