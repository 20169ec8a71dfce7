import type { MissedFacts, SourceStates } from "../../bus/sources/source-states.ts";
import { isRecent } from "../../channels/pull/reconcile-run.ts";
import { listReconcilingSources } from "../../data/channels/sources.ts";
import type { Queryable } from "../../data/database.ts";
import { nameChannels } from "../../data/problems/affected-objects.ts";
import type { Sighting } from "../../data/problems/problems.ts";
import { type Clock, formatTimestamp } from "../../lib/clock.ts";
import { mapBounded } from "../../lib/map-bounded.ts";
import { formatCount } from "../../lib/quantities.ts";

export interface MissedChecksDeps {
  readonly db: Queryable;
  readonly states: Pick<SourceStates, "read">;
  readonly clock: Clock;
}

const AT_ONCE = 32;

/** Finds webhook channels that missed deliveries within a day, and sources that compare wrong ids. */
export async function findMissedDeliveries({
  db,
  states,
  clock,
}: MissedChecksDeps): Promise<readonly Sighting[]> {
  const nowMs = clock();
  const missedBy = new Map<number, MissedFacts[]>();
  const mismatched: number[] = [];
  await mapBounded(await listReconcilingSources(db), AT_ONCE, async ({ number, reconciled }) => {
    const { lastError, missed } = await states.read(number);
    if (lastError?.code === "reconcile_mismatch") mismatched.push(number);
    if (missed !== undefined && isRecent(missed, nowMs))
      missedBy.set(reconciled, [...(missedBy.get(reconciled) ?? []), missed]);
  });
  const named = await nameChannels(db, [...missedBy.keys(), ...mismatched]);
  const missed = [...missedBy].flatMap(([number, facts]): readonly Sighting[] => {
    const channel = named.get(number);
    if (channel === undefined) return [];
    const count = facts.reduce((sum, one) => sum + one.count, 0);
    const oldestMs = Math.min(...facts.map((one) => one.oldestMs));
    const newestMs = Math.max(...facts.map((one) => one.newestMs));
    return [
      {
        ...channel,
        kind: "deliveries_missed",
        severity: "warning",
        figures: { count, oldestMs, newestMs },
        message: `The channel missed ${formatCount(count, "delivery", "deliveries")} from ${formatTimestamp(oldestMs)} to ${formatTimestamp(newestMs)}. A poll found them within the last day.`,
        suggestedAction:
          "Check that the provider can reach the channel's address, and that it has not disabled the webhook. Items that are older than the dedupe window are in quarantine as window_passed.",
      },
    ];
  });
  const wrong = mismatched.flatMap((number): readonly Sighting[] => {
    const channel = named.get(number);
    if (channel === undefined) return [];
    return [
      {
        ...channel,
        kind: "reconcile_mismatch",
        severity: "error",
        message:
          "The ids of the polled items differ from those of the received events, so the channel does not publish missed events.",
        suggestedAction:
          "Compare the ids of a dry run with those of received events. Then correct `as`, so that it supplies the value of `idPath`.",
      },
    ];
  });
  return [...missed, ...wrong];
}
