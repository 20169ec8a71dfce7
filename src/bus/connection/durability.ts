import type { NodeFacts } from "./node-facts.ts";
import { NotDurableError } from "./redis-errors.ts";

/**
 * Durability levels, weakest first. Each level names the worst failure that acknowledged writes survive: no failure (`none`), or a crash
 * of the Redis process (`process`). `fsync` also survives a crash of the machine, and `replica` also the loss of its disk.
 */
export const DURABILITY_LEVELS = ["none", "process", "fsync", "replica"] as const;
export type DurabilityLevel = (typeof DURABILITY_LEVELS)[number];

/**
 * The durability that the operator requires. `asserted` means that Redis may hide its settings, because the operator guarantees the
 * level.
 */
export interface DurabilityDemand {
  readonly level: DurabilityLevel;
  readonly asserted: boolean;
}

/** Commands to send after a batch of writes, on the same connection, to confirm that the batch is durable. */
export interface DurabilityWait {
  /** Whether to send `WAITAOF 1 0`, which waits until Redis has synced its append-only file to disk. */
  readonly localFsync: boolean;
  /** Number of replicas that must confirm the batch with `WAIT`. 0 sends no `WAIT`. */
  readonly replicas: number;
}

export const atLeast = (held: DurabilityLevel, wanted: DurabilityLevel): boolean =>
  DURABILITY_LEVELS.indexOf(held) >= DURABILITY_LEVELS.indexOf(wanted);

/**
 * Returns the durability of a master, if the commands from `requiredWait` follow each batch. Returns `unknown` if Redis does not
 * reveal the necessary settings.
 *
 * Without these commands, `fsync` needs `appendfsync always`, and `replica` is impossible.
 */
export function computeDurability(facts: NodeFacts, demand: DurabilityDemand): DurabilityLevel | "unknown" {
  if (!facts.appendOnly) return "none";
  const { localFsync = false, replicas = 0 } = requiredWait(facts, demand) ?? {};
  if (facts.appendFsync !== "always" && !localFsync) {
    return facts.appendFsync === undefined && atLeast(demand.level, "fsync") ? "unknown" : "process";
  }
  return replicas > 0 && facts.connectedReplicas >= replicas ? "replica" : "fsync";
}

/**
 * Returns the wait commands that the required level needs, and no others, because each costs a round trip to the disk or to a replica.
 * Returns `undefined` if none are needed.
 */
export function requiredWait(facts: NodeFacts, demand: DurabilityDemand): DurabilityWait | undefined {
  const localFsync =
    atLeast(demand.level, "fsync") && facts.appendOnly && facts.appendFsync !== "always" && facts.hasWaitAof;
  const replicas = demand.level === "replica" ? 1 : 0;
  return localFsync || replicas > 0 ? { localFsync, replicas } : undefined;
}

const WAIT_TIMEOUT_MS = 2000;

/**
 * Sends WAITAOF or WAIT, and resolves when the required durability is confirmed. Call it in the same tick as the write, so that no
 * other command comes between.
 *
 * @throws NotDurableError
 */
export async function awaitDurability(
  { send }: { readonly send: (command: string, args: string[], sinceMs: number) => Promise<unknown> },
  wait: DurabilityWait,
  sinceMs = performance.now(),
): Promise<void> {
  const timeout = String(WAIT_TIMEOUT_MS);
  const fsync = wait.localFsync ? send("waitaof", ["1", "0", timeout], sinceMs) : undefined;
  const replicas = wait.replicas > 0 ? send("wait", [String(wait.replicas), timeout], sinceMs) : undefined;
  const [fsynced, replicated] = await Promise.all([fsync, replicas]);
  if (fsync !== undefined && !(Array.isArray(fsynced) && Number(fsynced[0]) >= 1)) {
    throw new NotDurableError(`the append-only file was not synced within ${WAIT_TIMEOUT_MS} ms`);
  }
  if (replicas !== undefined && !(Number(replicated) >= wait.replicas)) {
    throw new NotDurableError(
      `${replicated} of ${wait.replicas} required replicas confirmed the write within ${WAIT_TIMEOUT_MS} ms`,
    );
  }
}

const REMEDIES: Readonly<Record<DurabilityLevel, string>> = {
  none: "no setting is needed",
  process: "set `appendonly yes` in Redis",
  fsync: "set `appendonly yes` and `appendfsync always` in Redis",
  replica: "set `appendonly yes` and `appendfsync always` in Redis and add a replica",
};

/**
 * Returns an error message if a master is less durable than required, otherwise `undefined`. An unknown durability is no error if
 * the operator guarantees the level.
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

/** Returns a warning that the operator has not chosen a durability level. `held` is the level that Redis offers. */
export function unchosenDurability(held: DurabilityLevel | "unknown"): {
  readonly message: string;
  readonly suggestedAction: string;
} {
  return {
    message: `INLET_DURABILITY is not set, so a 200 does not promise that events survive a crash of Redis, whose durability is "${held}".`,
    suggestedAction:
      held === "none" || held === "unknown"
        ? `To keep events after a crash, ${REMEDIES.fsync}, and set INLET_DURABILITY=fsync. To accept their loss, set INLET_DURABILITY=none.`
        : `Set INLET_DURABILITY=${held}, so that Inlet checks this level at each start and reconnect.`,
  };
}
