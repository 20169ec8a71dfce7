import { isDeepStrictEqual } from "node:util";
import { dedupeSchema, getConflictRule } from "../../event/dedupe.ts";
import type { BlueprintChannel, ChannelRow } from "../tables.ts";

type Rules = Pick<BlueprintChannel, "config" | "events">;

/** The last change after which a channel may not recognize events that it has received earlier. */
export interface DedupeChange {
  readonly dedupeChangedAt: Date | null;
  /** Seconds for which ids from before the change are still recognized. */
  readonly dedupeKeptSeconds: number | null;
}

/**
 * Returns the change to store with a new version of a channel. A longer window does not extend the memory of earlier ids. Another rule for
 * ids makes all of them useless.
 */
export function toDedupeChange(
  before: Pick<ChannelRow, "config" | "events" | "dedupeChangedAt" | "dedupeKeptSeconds">,
  after: Rules,
  nowMs: number,
): DedupeChange {
  const { dedupeChangedAt, dedupeKeptSeconds } = before;
  const [old, next] = [readDedupe(before), readDedupe(after)];
  const isOtherRule =
    old.by !== next.by ||
    getConflictRule(old).identity !== getConflictRule(next).identity ||
    changesIds(before, after);
  if (!isOtherRule && next.windowSeconds <= old.windowSeconds) return { dedupeChangedAt, dedupeKeptSeconds };
  // An earlier change counts for as long as the old window reaches back to it.
  const reachesBack =
    dedupeChangedAt !== null && nowMs - dedupeChangedAt.getTime() < old.windowSeconds * 1_000;
  const keptBefore = reachesBack ? (dedupeKeptSeconds ?? 0) : old.windowSeconds;
  return {
    dedupeChangedAt: new Date(nowMs),
    dedupeKeptSeconds: isOtherRule ? 0 : Math.min(old.windowSeconds, keptBefore),
  };
}

/** Returns the stored change in ms. `undefined` if there was none. */
export const readDedupeChange = ({
  dedupeChangedAt,
  dedupeKeptSeconds,
}: DedupeChange): { readonly atMs: number; readonly keptMs: number } | undefined =>
  dedupeChangedAt === null
    ? undefined
    : { atMs: dedupeChangedAt.getTime(), keptMs: (dedupeKeptSeconds ?? 0) * 1_000 };

function readDedupe({ config }: Pick<Rules, "config">) {
  const read = dedupeSchema.safeParse(config.dedupe ?? {});
  return read.success ? read.data : dedupeSchema.parse({});
}

/** Whether a definition that both versions have reads its id in another way. */
function changesIds(before: Rules, after: Rules): boolean {
  const idPaths = new Map(before.events.map(({ type, idPath }) => [type, idPath ?? null]));
  return (
    !isDeepStrictEqual(before.config.itemsPath, after.config.itemsPath) ||
    after.events.some(({ type, idPath }) => idPaths.has(type) && idPaths.get(type) !== (idPath ?? null))
  );
}
