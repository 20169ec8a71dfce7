import { PathBudgetError } from "../../normalize/paths/path.ts";
import { broken, doneAt, failed, rejected } from "../pull/source-end.ts";
import type { SourceEnd, SourceRun } from "../source.ts";
import type { Plan } from "./config/plan.ts";
import { computeIntervalMs } from "./config/schedule.ts";
import { hasNoPosition, parsePollCursor } from "./cursor/cursor.ts";
import { createPollWriter } from "./cursor/poll-writer.ts";
import { PositionError } from "./cursor/position.ts";
import { createReconciler, type Reconciler, type ReconcileState } from "./cursor/reconciler.ts";
import { createPageFetcher, type Exchange, type PageFetcherDeps } from "./fetch/fetch-page.ts";
import { createPageReader, type PageReaderDeps } from "./fetch/page-reader.ts";
import { type CheckedPage, createPageWalk, type PageWalkDeps, type Walked } from "./fetch/page-walk.ts";
import { FIRST_PAGE, type PageRequest } from "./pagination/page-request.ts";
import { continueAt, findLimit, MAX_POLL_MS, type Poll } from "./poll.ts";
import { pollBackwards } from "./poll-backwards.ts";
import type { TemplateValue } from "./request/template-values.ts";

export type PollDeps = Omit<PageFetcherDeps, "observe" | "reader"> & PageReaderDeps;

export interface PollOptions {
  /** Called after each HTTP request. */
  readonly observe?: (exchange: Exchange) => void;
  /** Called for each page with its number of items and the number of new items. */
  readonly onPage?: PageWalkDeps["onPage"];
  /** Whether to stop after the first page. */
  readonly isDryRun?: boolean;
  /**
   * Called when a poll has completed.
   *
   * @param isBehind true if all items that the poll saw are below the cursor
   */
  readonly onPollEnd?: (isBehind: boolean) => void;
}

/**
 * Runs one poll. It reads pages from the stored cursor on, publishes their new items in order, and moves the cursor with each write. If a
 * poll is interrupted, the next one continues exactly where it stopped.
 *
 * Pages that arrive unordered or oldest first are published as they arrive. Pages that arrive newest first are read up to the first known
 * item and then published in reverse order. If they exceed a limit of memory, pages or time, only the pages with the oldest items are
 * published, and later polls read the rest. So no item behind the cursor is ever unpublished.
 *
 * @throws UnavailableError and StaleSourceError, as `run.ingest` does
 * @throws the abort reason of the run's signal
 */
export async function pollSource(
  deps: PollDeps,
  plan: Plan,
  run: SourceRun,
  options: PollOptions = {},
): Promise<SourceEnd> {
  const nowMs = deps.clock();
  const { startedAtMs } = run;
  const isFirstPoll = hasNoPosition(run.cursor);
  const isLate = isFirstPoll && nowMs - startedAtMs > computeIntervalMs(plan.config, startedAtMs);
  const cursor = parsePollCursor(plan, run.cursor, { nowMs, startedAtMs, isLate });
  if (!cursor.ok) return broken("cursor", cursor.error);
  const { contradiction } = cursor.value;
  const { isDryRun = false, observe } = options;
  const skipsExisting = isFirstPoll && cursor.value.position.isPriming();
  if (contradiction !== undefined && !isDryRun) return broken("order", contradiction);
  const reader = createPageReader(deps, { plan, run });
  const fetcher = createPageFetcher({ ...deps, reader, ...(observe && { observe }) }, { plan, run });
  const reconciler = openReconciler(deps, plan, run, { state: cursor.value.reconciled, nowMs, isDryRun });
  if (reconciler !== undefined && "kind" in reconciler) return reconciler;
  const writer = createPollWriter(plan, run, { start: cursor.value, nowMs, reader, reconciler });
  const poll: Poll = {
    plan,
    writer,
    walk: createPageWalk({ plan, writer, fetcher, run, nowMs, onPage: options.onPage }),
    nowMs,
    isDryRun,
    isOverdue: () => deps.clock() - nowMs > MAX_POLL_MS,
    warn: run.warn,
  };
  let isDone = false;
  try {
    const walked = await (plan.config.order === "descending" ? pollBackwards(poll) : pollForwards(poll));
    const end = (hasEnded(walked) ? await writer.endComparison() : undefined) ?? walked;
    isDone = end.kind === "done";
    if (end.kind === "done") options.onPollEnd?.(cursor.value.position.isBehind?.() === true);
    if (end.kind === "done" && skipsExisting && isLate) run.warn("start_gap", LATE_START);
    return end;
  } catch (error) {
    if (error instanceof PathBudgetError) return failed("path_budget", error.message);
    if (!(error instanceof PositionError)) throw error;
    const { code, message } = error;
    if (code !== "order")
      return code === "position_missing" ? rejected(code, message) : failed(code, message);
    if (!isDryRun) await writer.refuse(message);
    return broken(code, message);
  } finally {
    await reconciler?.report(isDone);
  }
}

/** Returns whether a walk has read all pages, or as many as its limits allow. */
const hasEnded = (end: SourceEnd): boolean =>
  end.kind === "done" || (end.kind === "failed" && (end.code === "page_limit" || end.code === "deadline"));

/** Returns how the poll publishes events of another channel, or how the poll ends because it cannot. `undefined` if it publishes its own. */
function openReconciler(
  { clock }: PollDeps,
  plan: Plan,
  { reconcile: run, signal, warn }: SourceRun,
  {
    state,
    nowMs,
    isDryRun,
  }: {
    readonly state: ReconcileState | undefined;
    readonly nowMs: number;
    readonly isDryRun: boolean;
  },
): Reconciler | SourceEnd | undefined {
  const { reconcile } = plan;
  if (reconcile === undefined) return undefined;
  const { channelUid } = reconcile;
  if (run === undefined) return broken("reconciles", `The channel ${channelUid} no longer exists`);
  if (run.isPaused) {
    warn("reconciles_paused", `The channel ${channelUid} is paused, so its deliveries cannot be compared`);
    return doneAt(undefined);
  }
  return createReconciler(plan, reconcile, run, { state, isDryRun, clock, nowMs, signal });
}

const LATE_START =
  "The first successful poll was more than one interval after the start of the channel. It skipped all items that it found, including those that were created in between";

async function pollForwards(poll: Poll): Promise<SourceEnd> {
  const { isDryRun, plan, walk, writer } = poll;
  const { position } = writer;
  let ahead: Walked | undefined;
  let mustReadAhead = position.check !== undefined && plan.config.order === "ascending" && !isDryRun;
  for (;;) {
    const fetched = ahead ?? (await walk.fetch());
    ahead = undefined;
    if (fetched.kind === "ended") return fetched.end;
    const { doubt, isFirst, next, notBeforeMs, page } = fetched;
    if (next !== undefined && (doubt !== undefined || (isFirst && mustReadAhead))) {
      ahead = await readAhead(poll, { ...fetched, next });
      if (ahead?.kind === "ended" && doubt !== undefined) return ahead.end;
      if (ahead?.kind === "page" && ahead.isFirst) continue;
      mustReadAhead = false;
    }
    const headBefore = position.head?.();
    let hasMore = false;
    const published = await writer.publish(fetched, () => {
      hasMore = position.endPage(page, next);
      if (next === undefined && !hasMore) writer.finish(walk.pages(), fetched.validators);
    });
    if (published.kind === "ended") return published.end;
    if (published.kind === "cut") return continueAt(poll, notBeforeMs);
    if (isDryRun || (next === undefined && !hasMore)) return doneAt(notBeforeMs);
    const restarts = next === undefined || (plan.restartsWalk && !isSame(headBefore, position.head?.()));
    if (ahead !== undefined && !restarts) continue;
    ahead = undefined;
    const limit = findLimit(poll, fetched);
    // After progress, reaching the limit is not a failure, because the next poll continues from the new position.
    if (limit !== undefined) return writer.hasMoved() ? continueAt(poll, notBeforeMs) : limit;
    if (restarts) walk.goTo(FIRST_PAGE, position.head?.());
    else walk.goTo(next);
  }
}

/**
 * Fetches the page after the first one, so that both are checked against `order` before the first one is published. Returns `undefined` if
 * a limit does not allow it.
 *
 * @throws PositionError if the first page contradicts `order` and is not the only page
 */
async function readAhead(
  poll: Poll,
  first: CheckedPage & { readonly next: PageRequest },
): Promise<Walked | undefined> {
  const { isDryRun, walk } = poll;
  if (!isDryRun && findLimit(poll, first) === undefined) {
    walk.goTo(first.next);
    return walk.fetch();
  }
  if (first.doubt !== undefined) throw first.doubt;
  return undefined;
}

const isSame = (a: TemplateValue | undefined, b: TemplateValue | undefined): boolean =>
  JSON.stringify(a) === JSON.stringify(b);
