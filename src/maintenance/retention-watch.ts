import type { RetainedTopic } from "../bus/retention/retention.ts";
import type { InspectGroups } from "../bus/retention/retention-risk.ts";
import type { Queryable } from "../data/database.ts";
import { countDeadLetters } from "../data/subscriptions/dead-letters.ts";
import { clearRisk, markAtRisk } from "../data/subscriptions/retention-risk.ts";
import { isId } from "../lib/ids.ts";
import { startLoop } from "../lib/loop.ts";
import { mapBounded } from "../lib/map-bounded.ts";
import type { Log } from "../log.ts";
import { type Backlog, createBacklogs } from "./backlogs.ts";

export interface RetentionWatchDeps {
  readonly db: Queryable;
  readonly inspectGroups: InspectGroups;
  readonly log: Log;
  /** Reads all topics in pages. Stops early if another gateway takes over. */
  readonly pages: () => AsyncIterable<readonly RetainedTopic[]>;
  readonly isHolder: () => boolean;
  readonly everyMs: number;
  /** Maximum number of subscriptions in `backlogs`. */
  readonly mostShown: number;
}

const TOPICS_AT_ONCE = 8;
/** Age at which a result is outdated, in check intervals. */
const STALE_LOOKS = 4;
/** Interval at which a gateway tests whether it must do the check, in ms. */
const TICK_MS = 1_000;

/**
 * Starts periodic checks of all topics for subscriptions whose unread events will soon be deleted by retention. Updates and logs a subscription when it becomes at risk or recovers. An incomplete check never
 * reports a recovery.
 */
export function startRetentionWatch(deps: RetentionWatchDeps) {
  const { db, inspectGroups, log, pages, isHolder, everyMs, mostShown } = deps;
  let count = 0;
  let furthest: readonly Backlog[] = [];
  let seen: { readonly of: ReadonlyMap<string, Backlog>; readonly atMs: number } | undefined;

  async function look(signal: AbortSignal): Promise<void> {
    if (!isHolder()) return;
    const found = new Set<string>();
    const backlogs = createBacklogs();
    let failure: { readonly error: unknown } | undefined;
    for await (const page of pages()) {
      await mapBounded(page, TOPICS_AT_ONCE, async (topic) => {
        if (signal.aborted || failure) return;
        try {
          for (const group of await inspectGroups(topic)) {
            if (!isId("sub", group.name)) continue;
            backlogs.add(topic.topic, group);
            if (group.isAtRisk) found.add(group.name);
          }
        } catch (error) {
          failure = { error };
        }
      });
      if (signal.aborted || failure) break;
    }
    const atRisk = [...found];
    for (const one of await markAtRisk(db, atRisk)) {
      log.warn(
        { event: "retention.at_risk", subscription: one.id, organization: one.organizationId },
        "retention will trim unread events soon",
      );
    }
    if (failure) throw failure.error;
    if (signal.aborted || !isHolder()) return;
    for (const one of await clearRisk(db, atRisk)) {
      log.info(
        { event: "retention.safe", subscription: one.id, organization: one.organizationId },
        "unread events are no longer at risk from retention",
      );
    }
    count = atRisk.length;
    backlogs.addLetters(await countDeadLetters(db));
    furthest = backlogs.furthest(mostShown);
    seen = { of: backlogs.all(), atMs: performance.now() };
  }

  const loop = startLoop({
    step: look,
    everyMs: () => (isHolder() ? everyMs : Math.min(TICK_MS, everyMs)),
    onFailing: (err) =>
      log.warn(
        { event: "retention_watch.failing", err },
        "the check for unread events at risk of being trimmed is failing",
      ),
    onRecovered: () =>
      log.info(
        { event: "retention_watch.recovered" },
        "the check for unread events at risk of being trimmed works again",
      ),
  });
  return {
    /** Number of subscriptions that may soon lose unread events. 0 if another gateway does the check. */
    atRisk: () => (isHolder() ? count : 0),
    /** The largest backlogs, plus the sum of all others. Empty if another gateway does the check. */
    backlogs: () => (isHolder() ? furthest : []),
    /** Backlogs of all subscriptions. `undefined` if this gateway has not counted them recently. */
    backlogsById: () =>
      seen !== undefined && performance.now() - seen.atMs < STALE_LOOKS * everyMs ? seen.of : undefined,
    [Symbol.asyncDispose]: loop[Symbol.asyncDispose],
  };
}
