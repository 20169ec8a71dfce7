import { broken, doneAt, failed, rejected } from "../../pull/source-end.ts";
import type { SourceEnd, SourceRun } from "../../source.ts";
import type { Plan } from "../config/plan.ts";
import type { PollWriter } from "../cursor/poll-writer.ts";
import type { PositionError } from "../cursor/position.ts";
import { FIRST_PAGE, type PageRequest } from "../pagination/page-request.ts";
import type { TemplateContext, TemplateValue } from "../request/template-values.ts";
import type { Fetched, FetchedPage, PageFetcher } from "./fetch-page.ts";
import type { Page } from "./page.ts";

export interface CheckedPage extends FetchedPage {
  /** Set if this page contradicts `order`, unless it turns out to be the only page. */
  readonly doubt: PositionError | undefined;
}

export type Walked = CheckedPage | { readonly kind: "ended"; readonly end: SourceEnd };

export interface PageWalkDeps {
  readonly plan: Plan;
  readonly writer: PollWriter;
  readonly fetcher: PageFetcher;
  readonly run: Pick<SourceRun, "opened" | "startedAtMs" | "warn">;
  readonly nowMs: number;
  readonly onPage?: ((items: number, fresh: number) => void) | undefined;
}

export type PageWalk = ReturnType<typeof createPageWalk>;

/**
 * Reads the pages of one poll, one after the other.
 * If pages are selected by number or offset, items that are added or deleted meanwhile shift the later pages, so items could be missed. If
 * `restartsWalk` is set, this function therefore fetches the previous page again before it accepts the next one. If that page no longer
 * ends with the same item, reading starts over from the first page.
 */
export function createPageWalk({ fetcher, nowMs, onPage, plan, run, writer }: PageWalkDeps) {
  const { position } = writer;
  let at = position.resumeAt?.() ?? FIRST_PAGE;
  let cursor = position.cursor();
  let before: { readonly at: PageRequest; readonly end: string } | undefined;
  let pages = 0;
  let items = 0;
  let hasRestarted = false;

  const isAtLimit = (): boolean => pages >= plan.pagination.maxPages || items >= plan.pagination.maxItems;

  /**
   * Fetches a page. If the page has items and names itself as the next page, this function fetches it a second time. Only a page that names
   * itself twice is the last one. Otherwise, one faulty response would hide all later pages.
   */
  async function ask(page: PageRequest): Promise<Fetched> {
    const fetched = await askOnce(page);
    if (fetched.kind !== "page" || !fetched.namesItself || fetched.page.itemCount === 0) return fetched;
    fetcher.forget();
    return askOnce(page);
  }

  async function askOnce(page: PageRequest): Promise<Fetched> {
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

  /** Fetches the page after a page that claims to be the last one. Returns the end of the poll if that page has other items. */
  async function verifyLast({ doubtful, page }: FetchedPage): Promise<Walked | undefined> {
    if (doubtful === undefined || isAtLimit()) return undefined;
    const after = await fetcher.fetch({
      at: doubtful,
      context: contextOf(),
      url: undefined,
      validators: undefined,
    });
    fetcher.forget();
    const known = new Set(page.items.map((item) => item.contentHash()));
    // The last page may contradict the setting as well, because it claims to have a next page.
    const isNextMissing =
      after.kind === "ended" && after.end.kind === "failed" && after.end.code === "next_page";
    const hasItems = after.kind === "page" && after.page.items.some((item) => !known.has(item.contentHash()));
    const error = plan.pagination.settleDoubt?.(hasItems || isNextMissing);
    return error === undefined ? undefined : { kind: "ended", end: rejected("has_more", error) };
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
    const isGap = target === "position" && plan.discriminator.firstToken !== undefined;
    run.warn(`${target}_expired`, isGap ? EXPIRED.gap : EXPIRED[target]);
    await writer.save();
    restartWalk(position.cursor());
    return undefined;
  }

  /** Requests the first token if the source has none. It is stored at once, so that no changes are lost if the poll fails later. */
  async function fetchFirstToken(): Promise<Walked | undefined> {
    const { firstToken } = plan.discriminator;
    if (firstToken === undefined || cursor !== undefined) return undefined;
    const token = await fetcher.fetchToken(firstToken);
    if (!token.ok) return { kind: "ended", end: token.error };
    position.startAt?.(token.value);
    cursor = position.cursor();
    await writer.save();
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
    /**
     * Fetches and checks the current page. If the page has expired, starts over from the first page, but only once per poll.
     * @throws PositionError if the items contradict the settings
     */
    async fetch(): Promise<Walked> {
      for (;;) {
        const lacking = await fetchFirstToken();
        if (lacking !== undefined) return lacking;
        const fetched = await ask(at);
        switch (fetched.kind) {
          case "page": {
            const isBelieved = await confirm();
            if (typeof isBelieved === "object") return isBelieved;
            if (isBelieved) {
              const end = await verifyLast(fetched);
              if (end !== undefined) return end;
              before = { at, end: describePageEnd(fetched.page) };
              const { arrivedAtMs, isFirst, page } = fetched;
              if (isFirst) position.adjustStart?.(page, { arrivedAtMs, warn: run.warn });
              const doubt = position.check?.(page, { isFirst, warn: run.warn });
              onPage?.(page.items.length, position.select(page).length);
              return { ...fetched, doubt };
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
  gap: "The server no longer knows the token. The channel continues with a new one, so the changes in between are missing",
} as const;
