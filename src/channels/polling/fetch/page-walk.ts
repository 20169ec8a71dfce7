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

/**
 * The way from page to page in one poll.
 *
 * Where pages are counted and each could begin anew (`restartsWalk`), a page behind the first is believed only if the one before it
 * still ends as it did: else items have come or gone meanwhile, others have moved past the reader, and the walk begins anew.
 */
export class PageWalk {
  readonly #deps: PageWalkDeps;
  #at: PageRequest;
  #before: { readonly at: PageRequest; readonly end: string } | undefined;
  #cursor: TemplateValue | undefined;
  #pages = 0;
  #items = 0;
  #hasBegunAnew = false;

  constructor(deps: PageWalkDeps) {
    const { position } = deps.writer;
    this.#deps = deps;
    this.#at = position.resumeAt ?? FIRST_PAGE;
    this.#cursor = position.cursor;
  }

  get pages(): number {
    return this.#pages;
  }

  /** True where the bounds of a poll let no further page be read. */
  get isAtLimit(): boolean {
    const { maxItems, maxPages } = this.#deps.plan.pagination;
    return this.#pages >= maxPages || this.#items >= maxItems;
  }

  /** Asks for the page. What the server no longer knows is asked for anew, once. */
  async fetch(): Promise<Walked> {
    for (;;) {
      const fetched = await this.#ask(this.#at);
      switch (fetched.kind) {
        case "page": {
          const isBelieved = await this.#confirm();
          if (typeof isBelieved === "object") return isBelieved;
          if (!isBelieved) {
            if (this.isAtLimit) return failed("pages_shift", SHIFTING);
            this.#beginAnew(this.#cursor);
            break;
          }
          this.#before = { at: this.#at, end: endOf(fetched.page) };
          return fetched;
        }
        case "ended":
          return fetched;
        case "notModified":
          return this.#endUnchanged(fetched.notBeforeMs);
        case "expired": {
          const end = await this.#expire(fetched);
          if (end !== undefined) return end;
          break;
        }
        default:
          return fetched satisfies never;
      }
    }
  }

  /** @param cursor what `{{cursor}}` stands for from there on; undefined: as before */
  goTo(at: PageRequest, cursor?: TemplateValue): void {
    this.#at = at;
    if (cursor !== undefined || at.kind === "first") this.#cursor = cursor;
  }

  async #ask(at: PageRequest): Promise<Fetched> {
    const { fetcher, run, writer } = this.#deps;
    const fetched = await fetcher.fetch({
      at,
      context: this.#context(),
      url: writer.position.url,
      validators: this.#pages === 0 && at.kind === "first" ? writer.validators : undefined,
    });
    if (fetched.kind !== "page") return fetched;
    run.opened();
    this.#pages++;
    this.#items += fetched.page.itemCount;
    return fetched;
  }

  /** True where no item can have been passed over between the page before and this one. */
  async #confirm(): Promise<boolean | Walked> {
    const before = this.#before;
    if (!this.#deps.plan.restartsWalk || before === undefined || this.#at.kind === "first") return true;
    this.#deps.fetcher.forget();
    const again = await this.#ask(before.at);
    if (again.kind === "page") return endOf(again.page) === before.end;
    return again.kind === "ended" ? again : failed("pages_shift", SHIFTING);
  }

  async #endUnchanged(notBeforeMs: number | undefined): Promise<Walked> {
    const { run, writer } = this.#deps;
    run.opened();
    writer.position.unchanged?.();
    await writer.save();
    return {
      kind: "ended",
      end: notBeforeMs === undefined ? { kind: "done" } : { kind: "done", notBeforeMs },
    };
  }

  /** Undefined where the walk has begun anew. */
  async #expire({ end, what }: Extract<Fetched, { kind: "expired" }>): Promise<Walked | undefined> {
    const { run, writer } = this.#deps;
    if (this.#hasBegunAnew || writer.position.expire?.(what) !== true) {
      return { kind: "ended", end: what === "page" ? passing(end) : end };
    }
    this.#hasBegunAnew = true;
    run.warn(`${what}_expired`, EXPIRED[what]);
    await writer.save();
    this.#beginAnew(writer.position.cursor);
    return undefined;
  }

  #beginAnew(cursor: TemplateValue | undefined): void {
    this.#deps.fetcher.forget();
    this.goTo(FIRST_PAGE, cursor);
  }

  #context(): TemplateContext {
    const { nowMs, plan, run, writer } = this.#deps;
    const values = new Map<string, TemplateValue>([["now", instant(nowMs)]]);
    const { startAt } = plan.settings;
    const lastPollAtMs = writer.lastPollAtMs ?? (startAt === "earliest" ? undefined : run.startedAtMs);
    if (lastPollAtMs !== undefined) values.set("lastPollAt", instant(lastPollAtMs));
    if (this.#cursor !== undefined) values.set("cursor", this.#cursor);
    return values;
  }
}

/** An end that is none for good: it is about a page, and the next poll asks for others. */
const passing = (end: SourceEnd): SourceEnd => (end.kind === "broken" ? { ...end, kind: "failed" } : end);

const failed = (code: string, message: string): Walked => ({
  kind: "ended",
  end: { kind: "failed", code, message },
});

const SHIFTING = "Items come and go faster than the pages can be counted";

/** How many items a page holds, and the last of them. */
const endOf = ({ itemCount, items }: Page): string => `${itemCount} ${items.at(-1)?.contentHash()}`;

const instant = (ms: number): TemplateValue => ({ kind: "instant", ms, format: "iso" });

const EXPIRED = {
  page: "The server does not know the next page any more: the walk over the pages begins anew",
  position: "The server does not know the token any more: all that it has is asked for again",
} as const;
