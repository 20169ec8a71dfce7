import { broken, doneAt, failed } from "../../pull/source-end.ts";
import type { SourceEnd, SourceRun } from "../../source.ts";
import type { PollWriter } from "../cursor/poll-writer.ts";
import { FIRST_PAGE, type PageRequest } from "../pagination/page-request.ts";
import type { TemplateContext, TemplateValue } from "../request/template-values.ts";
import type { Plan } from "../settings/plan.ts";
import type { Fetched, FetchedPage, PageFetcher } from "./fetch-page.ts";
import type { Page } from "./page.ts";

/** The result of asking for a page; `end` where there is none. */
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
 * The way from page to page in one poll.
 *
 * Where pages are counted and each could begin anew (`restartsWalk`), a page behind the first is believed only if the one before it
 * still ends as it did: else items have come or gone meanwhile, others have moved past the reader, and the walk begins anew.
 */
export function createPageWalk({ fetcher, nowMs, plan, run, writer }: PageWalkDeps) {
  const { position } = writer;
  let at = position.resumeAt?.() ?? FIRST_PAGE;
  let cursor = position.cursor();
  let before: { readonly at: PageRequest; readonly end: string } | undefined;
  let pages = 0;
  let items = 0;
  let hasRestarted = false;

  /** True where the bounds of a poll let no further page be read. */
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
    const startedAtMs = plan.settings.startAt === "earliest" ? undefined : run.startedAtMs;
    const lastPollAtMs = writer.cursor().lastPollAtMs ?? startedAtMs;
    if (lastPollAtMs !== undefined) values.set("lastPollAt", instant(lastPollAtMs));
    if (cursor !== undefined) values.set("cursor", cursor);
    return values;
  }

  /** True where no item can have been passed over between the page before and this one. */
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

  /** Undefined where the walk has begun anew. */
  async function expire({ end, target }: Extract<Fetched, { kind: "expired" }>): Promise<Walked | undefined> {
    if (hasRestarted || position.expire?.(target) !== true) {
      // About a page: the next poll asks for others.
      if (target === "page") return { kind: "ended", end: failed(end.code, end.message, end.notBeforeMs) };
      const { discriminator } = plan.settings;
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
    /** Asks for the page. What the server no longer knows is asked for anew, once. */
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
    /** @param from what `{{cursor}}` stands for from there on; undefined: as before */
    goTo(page: PageRequest, from?: TemplateValue): void {
      at = page;
      if (from !== undefined || page.kind === "first") cursor = from;
    },
  };
}

const SHIFTING: Walked = {
  kind: "ended",
  end: failed("pages_shift", "Items come and go faster than the pages can be counted"),
};

/** How many items a page holds, and the last of them. */
const describePageEnd = ({ itemCount, items }: Page): string => `${itemCount} ${items.at(-1)?.contentHash()}`;

const instant = (ms: number): TemplateValue => ({ kind: "instant", ms, format: "iso" });

const EXPIRED = {
  page: "The server does not know the next page any more: the walk over the pages begins anew",
  position: "The server does not know the token any more: all that it has is asked for again",
} as const;
