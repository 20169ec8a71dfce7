import { type Failed, failed } from "../pull/source-end.ts";
import type { SourceEnd, SourceRun } from "../source.ts";
import type { Plan } from "./config/plan.ts";
import type { PollWriter } from "./cursor/poll-writer.ts";
import type { FetchedPage } from "./fetch/fetch-page.ts";
import type { PageWalk } from "./fetch/page-walk.ts";

/**
 * Duration after which a poll stops at the end of its current page, so that other sources get a turn. The next poll continues from there.
 */
export const MAX_POLL_MS = 120_000;

/** One poll, whichever order its pages have. */
export interface Poll {
  readonly plan: Plan;
  readonly writer: PollWriter;
  readonly walk: PageWalk;
  readonly nowMs: number;
  readonly isDryRun: boolean;
  readonly isOverdue: () => boolean;
  readonly warn: SourceRun["warn"];
}

/** Returns how a poll without progress ends if it has reached a limit. Returns `undefined` if the next page may be read. */
export function findLimit({ isOverdue, walk }: Poll, { notBeforeMs }: FetchedPage): Failed | undefined {
  if (walk.isAtLimit()) return failed("page_limit", AT_LIMIT);
  if (isOverdue())
    return failed("deadline", `The pages could not be read within ${MAX_POLL_MS / 1000} seconds`);
  if (notBeforeMs === undefined) return undefined;
  return {
    ...failed("rate_limited", "The server's rate limit ended the poll between two pages"),
    notBeforeMs,
  };
}

const AT_LIMIT =
  "The limit `pagination.maxPages` or `pagination.maxItems` was reached without progress: the pages read had no new items, or did not reach the known ones";

export const continueAt = ({ nowMs }: Poll, notBeforeMs: number | undefined): SourceEnd => ({
  kind: "done",
  notBeforeMs: notBeforeMs ?? nowMs,
});
