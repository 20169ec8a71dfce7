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
  readonly lookAtGroups: InspectGroups;
  readonly log: Log;
  /** All topics in pages; ends early where another gateway has the turn by now. */
  readonly pages: () => AsyncIterable<readonly RetainedTopic[]>;
  /** Whether it is this gateway's turn. */
  readonly isHolder: () => boolean;
  readonly everyMs: number;
  /** How many subscriptions `backlogs` names. */
  readonly mostShown: number;
}

/** Raises the alarm before retention takes unread events of a subscription. Disposal waits for the look under way. */
export interface RetentionWatch extends AsyncDisposable {
  /** Subscriptions at risk, as this gateway saw last; 0 where it is another's turn. */
  readonly atRisk: () => number;
  /** Those that are furthest behind, and the rest as one; as this gateway saw last, none where it is another's turn. */
  readonly backlogs: () => readonly Backlog[];
  /** All of them by subscription; undefined where this gateway has not seen them of late. */
  readonly standings: () => ReadonlyMap<string, Backlog> | undefined;
}

const TOPICS_AT_ONCE = 8;
/** What was seen is not true any more after so many intervals without a look that came through. */
const STALE_LOOKS = 4;
/** A gateway whose turn begins looks within so long. */
const TICK_MS = 1_000;

/**
 * Looks at every topic in turn, at a few at a time: one script call each, however many subscriptions cover it. Changes are
 * written into their rows and logged once. A look that could not see all of them clears nothing.
 */
export function startRetentionWatch(deps: RetentionWatchDeps): RetentionWatch {
  const { db, lookAtGroups, log, pages, isHolder, everyMs, mostShown } = deps;
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
          for (const group of await lookAtGroups(topic)) {
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
        "retention is about to take unread events",
      );
    }
    if (failure) throw failure.error;
    if (signal.aborted || !isHolder()) return;
    for (const one of await clearRisk(db, atRisk)) {
      log.info(
        { event: "retention.safe", subscription: one.id, organization: one.organizationId },
        "unread events are safe from retention again",
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
      log.warn({ event: "retention_watch.failing", err }, "unread events cannot be watched"),
    onRecovered: () => log.info({ event: "retention_watch.recovered" }, "unread events are watched again"),
  });
  return {
    atRisk: () => (isHolder() ? count : 0),
    backlogs: () => (isHolder() ? furthest : []),
    standings: () =>
      seen !== undefined && performance.now() - seen.atMs < STALE_LOOKS * everyMs ? seen.of : undefined,
    [Symbol.asyncDispose]: loop[Symbol.asyncDispose],
  };
}
