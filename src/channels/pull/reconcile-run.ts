import type { MissedFacts, SourceFacts, SourceStates } from "../../bus/sources/source-states.ts";
import type { ReconcileFindings, ReconcileRun } from "../source.ts";
import type { ReconciledChannel, RunDeps, SourceChannel } from "./open-run.ts";
import { toVerifiedDelivery } from "./verified-delivery.ts";

/** Duration for which missed events are added up and reported. */
const MISSED_FOR_MS = 24 * 3_600_000;

/** Whether missed events are still reported. */
export const isRecent = ({ atMs }: MissedFacts, nowMs: number): boolean => nowMs - atMs <= MISSED_FOR_MS;

export interface ReconcileRunOptions<C extends SourceChannel> {
  /** The source that polls. */
  readonly source: C;
  readonly reconciled: ReconciledChannel<C>;
  readonly ingestAll: ReconcileRun["ingestAll"];
  readonly note: (facts: SourceFacts) => void;
}

/** Creates the part of a run that publishes missed events of another channel. */
export function createReconcileRun<C extends SourceChannel>(
  deps: Pick<RunDeps<C>, "clock" | "observe"> & { readonly states: Pick<SourceStates, "read"> },
  { ingestAll, note, reconciled, source }: ReconcileRunOptions<C>,
): ReconcileRun {
  const { channel: target, compare, idRules, isForgotten, isPaused } = reconciled;
  return {
    channelUid: target.identity.uid,
    idRules,
    isForgotten,
    isPaused,
    compare: (deliveries, options) => compare(deliveries.map(toVerifiedDelivery), options),
    ingestAll,
    async report({ missed, ...found }) {
      const atMs = deps.clock();
      note({ lastReconcile: { atMs, ...found } });
      if (missed === undefined) return;
      deps.observe({ kind: "missed", channel: source, target, ...found });
      // The events are already published, so a failure only loses their number.
      const { missed: before } = await deps.states.read(source.identity.number).catch(() => NOTHING);
      note({ missed: addMissed(before, missed, atMs) });
    },
  };
}

const NOTHING = { missed: undefined };

function addMissed(
  before: MissedFacts | undefined,
  { count, newestMs, oldestMs }: NonNullable<ReconcileFindings["missed"]>,
  atMs: number,
): MissedFacts {
  if (before === undefined || !isRecent(before, atMs)) return { count, oldestMs, newestMs, atMs };
  return {
    count: before.count + count,
    oldestMs: Math.min(before.oldestMs, oldestMs),
    newestMs: Math.max(before.newestMs, newestMs),
    atMs,
  };
}
