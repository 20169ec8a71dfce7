import type { SourceEnd, SourceRun } from "../source.ts";
import type { Fetched, FetchedPage, PageQuery } from "./fetch-page.ts";
import { FIRST_PAGE, type PageRequest } from "./pagination/page-request.ts";
import type { Plan } from "./plan.ts";
import type { PollWriter } from "./poll-writer.ts";
import type { TemplateContext, TemplateValue } from "./template-values.ts";

/** What asking for a page brings: `end` where there is none. */
export type Walked = FetchedPage | { readonly kind: "ended"; readonly end: SourceEnd };

export interface PageWalkDeps {
  readonly plan: Plan;
  readonly writer: PollWriter;
  readonly fetch: (query: PageQuery) => Promise<Fetched>;
  readonly run: Pick<SourceRun, "opened" | "startedAtMs" | "warn">;
  readonly nowMs: number;
}

/** The way from page to page in one poll. */
export class PageWalk {
  readonly #deps: PageWalkDeps;
  #at: PageRequest;
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
    const { plan, run, writer } = this.#deps;
    const { position } = writer;
    for (;;) {
      const isBeginning = this.#pages === 0 && this.#at.kind === "first";
      const fetched = await this.#deps.fetch({
        at: this.#at,
        context: this.#context(),
        url: position.url,
        validators: isBeginning ? writer.validators : undefined,
      });
      switch (fetched.kind) {
        case "page":
          run.opened();
          this.#pages++;
          this.#items += fetched.page.itemCount;
          return fetched;
        case "ended":
          return fetched;
        case "notModified": {
          run.opened();
          position.unchanged?.();
          if (plan.request.names.has("lastPollAt")) writer.finish(1, writer.validators);
          await writer.save();
          return { kind: "ended", end: doneAt(fetched.notBeforeMs) };
        }
        case "expired":
          if (this.#hasBegunAnew || position.expire?.(fetched.what) !== true) {
            return { kind: "ended", end: fetched.what === "page" ? passing(fetched.end) : fetched.end };
          }
          this.#hasBegunAnew = true;
          run.warn(`${fetched.what}_expired`, EXPIRED[fetched.what]);
          await writer.save();
          this.goTo(FIRST_PAGE, position.cursor);
          break;
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

const doneAt = (notBeforeMs: number | undefined): SourceEnd =>
  notBeforeMs === undefined ? { kind: "done" } : { kind: "done", notBeforeMs };

const instant = (ms: number): TemplateValue => ({ kind: "instant", ms, format: "iso" });

const EXPIRED = {
  page: "The server does not know the next page any more: the walk over the pages begins anew",
  position: "The server does not know the token any more: all that it has is asked for again",
} as const;
