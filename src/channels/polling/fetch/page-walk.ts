import { broken, doneAt, failed } from "../../pull/source-end.ts";
import type { SourceEnd, SourceRun } from "../../source.ts";
import type { Plan } from "../config/plan.ts";
import type { PollWriter } from "../cursor/poll-writer.ts";
import { FIRST_PAGE, type PageRequest } from "../pagination/page-request.ts";
import type { TemplateContext, TemplateValue } from "../request/template-values.ts";
import type { Fetched, FetchedPage, PageFetcher } from "./fetch-page.ts";
import type { Page } from "./page.ts";

export type Walked = FetchedPage | { readonly kind: "ended"; readonly end: SourceEnd };

export interface PageWalkDeps {
  readonly plan: Plan;
  readonly writer: PollWriter;
  readonly fetcher: PageFetcher;
  readonly run: Pick<SourceRun, "opened" | "startedAtMs" | "warn">;
  readonly nowMs: number;
}

export type PageWalk = ReturnType<typeof createPageWalk>;

/**
 * Reads the pages of one poll, one after the other.
 * If pages are selected by number or offset, items that are added or deleted meanwhile shift the later pages, so items could be missed. If
 * `restartsWalk` is set, this function therefore fetches the previous page again before it accepts the next one. If that page no longer
 * ends with the same item, reading starts over from the first page.
 */
export function createPageWalk({ fetcher, nowMs, plan, run, writer }: PageWalkDeps) {
  const { position } = writer;
  let at = position.resumeAt?.() ?? FIRST_PAGE;
  let cursor = position.cursor();
  let before: { readonly at: PageRequest; readonly end: string } | undefined;
  let pages = 0;
  let items = 0;
  let hasRestarted = false;

  const isAtLimit = (): boolean => pages >= plan.pagination.maxPages || items >= plan.pagination.maxItems;

  async function ask(page: PageRequest): Promise<Fetched> {
    const fetched = await fetcher.fetch({
      at: page,
      context: contextOf(),
      url: position.url?.(),
      validators: pages === 0 && page.kind === "first" ? writer.cursor().validators : undefined,
    });
    if (fetched.kind !== "page") return fetched;
    run.opened();
    pages++;
    items += fetched.page.itemCount;
    return fetched;
  }

  function contextOf(): TemplateContext {
    const values = new Map<string, TemplateValue>([["now", instant(nowMs)]]);
    const startedAtMs = plan.config.startAt === "earliest" ? undefined : run.startedAtMs;
    const lastPollAtMs = writer.cursor().lastPollAtMs ?? startedAtMs;
    if (lastPollAtMs !== undefined) values.set("lastPollAt", instant(lastPollAtMs));
    if (cursor !== undefined) values.set("cursor", cursor);
    return values;
  }

  /**
   * Fetches the previous page again if new items can shift pages. Returns true if no item was skipped between the previous page and this
   * one.
   */
  async function confirm(): Promise<boolean | Walked> {
    if (!plan.restartsWalk || before === undefined || at.kind === "first") return true;
    fetcher.forget();
    const again = await ask(before.at);
    if (again.kind === "page") return describePageEnd(again.page) === before.end;
    return again.kind === "ended" ? again : SHIFTING;
  }

  async function endUnchanged(notBeforeMs: number | undefined): Promise<Walked> {
    run.opened();
    position.unchanged?.();
    await writer.save();
    return { kind: "ended", end: doneAt(notBeforeMs) };
  }

  /** Handles an expired page or read position. Returns `undefined` if reading starts over from the first page. */
  async function expire({ end, target }: Extract<Fetched, { kind: "expired" }>): Promise<Walked | undefined> {
    if (hasRestarted || position.expire?.(target) !== true) {
      // The read position is still valid, so the next poll can request other pages.
      if (target === "page") return { kind: "ended", end: failed(end.code, end.message, end.notBeforeMs) };
      const { discriminator } = plan.config;
      const stops = discriminator.by === "token" && discriminator.onExpired === "stop";
      return { kind: "ended", end: stops ? broken(end.code, end.message) : end };
    }
    hasRestarted = true;
    run.warn(`${target}_expired`, EXPIRED[target]);
    await writer.save();
    restartWalk(position.cursor());
    return undefined;
  }

  function restartWalk(from: TemplateValue | undefined): void {
    fetcher.forget();
    at = FIRST_PAGE;
    cursor = from;
  }

  return {
    pages: () => pages,
    isAtLimit,
    /** Fetches the current page. If the page has expired, starts over from the first page, but only once per poll. */
    async fetch(): Promise<Walked> {
      for (;;) {
        const fetched = await ask(at);
        switch (fetched.kind) {
          case "page": {
            const isBelieved = await confirm();
            if (typeof isBelieved === "object") return isBelieved;
            if (isBelieved) {
              before = { at, end: describePageEnd(fetched.page) };
              return fetched;
            }
            if (isAtLimit()) return SHIFTING;
            restartWalk(cursor);
            break;
          }
          case "ended":
            return fetched;
          case "notModified":
            return endUnchanged(fetched.notBeforeMs);
          case "expired": {
            const end = await expire(fetched);
            if (end !== undefined) return end;
            break;
          }
          default:
            return fetched satisfies never;
        }
      }
    },
    /**
     * Sets the page to fetch next.
     * @param from new value of the placeholder `{{cursor}}`; `undefined` keeps the current value
     */
    goTo(page: PageRequest, from?: TemplateValue): void {
      at = page;
      if (from !== undefined || page.kind === "first") cursor = from;
    },
  };
}

const SHIFTING: Walked = {
  kind: "ended",
  end: failed("pages_shift", "The items on the pages change faster than the pages can be read"),
};

/**
 * Describes the end of a page, so that two responses for the same page can be compared. A different description means that items have
 * shifted.
 */
const describePageEnd = ({ itemCount, items }: Page): string => `${itemCount} ${items.at(-1)?.contentHash()}`;

const instant = (ms: number): TemplateValue => ({ kind: "instant", ms, format: "iso" });

const EXPIRED = {
  page: "The server no longer knows the next page. The poll starts again at the first page",
  position: "The server no longer knows the token. All items are requested again",
} as const;
