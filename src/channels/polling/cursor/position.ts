import type { Page, PageItem } from "../fetch/page.ts";
import type { PageRequest } from "../pagination/page-request.ts";
import type { TemplateValue } from "../request/template-values.ts";

/**
 * Where a source stands, worked on during one poll. The poll asks, in this order: `cursor` for the request; per page `select`, then
 * `add` for the selected items, some at a time, each time just before the write that publishes them together with what `save`
 * says; with the last of them `endPage`, and on the last page `endWalk`. What was saved says exactly what was added before, so
 * that a poll may end after any write; when a write fails the position is good for nothing more.
 */
export interface Position {
  /** The value of `{{cursor}}` at the beginning of a walk over the pages; undefined where there is nothing yet. */
  readonly cursor: () => TemplateValue | undefined;
  /** Its value in a walk that begins anew behind the last page; without it walks never do. */
  readonly head?: () => TemplateValue | undefined;
  /** An address in place of the request's own. */
  readonly url?: () => string | undefined;
  /** The page at which an earlier walk was left. */
  readonly resumeAt?: () => PageRequest | undefined;
  /** True while what is found is only taken note of: `startAt: "now"`. Nothing is selected then. */
  readonly isPriming: () => boolean;
  /** How many items more can be added; it must not be written while this is negative. */
  readonly remainingCapacity: () => number;
  /** The page's items that are new, in the order in which they are to be published. */
  readonly select: (page: Page) => readonly PageItem[];
  readonly add: (items: readonly PageItem[]) => void;
  /** True where all that comes after this page, of a feed that shows the newest first, is known. */
  readonly reachesKnown: (page: Page) => boolean;
  /** The page is through; `next`: the one that follows. Answers true where there is more to be had at once from the new position. */
  readonly endPage: (page: Page, next: PageRequest | undefined) => boolean;
  /** All pages are through, so many in this walk. */
  readonly endWalk: (pages: number) => void;
  /** True where pages showed items, and none that is not below the position: the server may count anew. */
  readonly isBehind?: () => boolean;
  /** The server says that it would answer what it answered last. */
  readonly unchanged?: () => void;
  /** The server no longer knows what the position refers to. False where nothing can be done about it. */
  readonly expire?: (target: "page" | "position") => boolean;
  /** As JSON, for `restore`. */
  readonly save: () => unknown;
}

/** The arguments by which a position is made. */
export interface PositionContext {
  readonly nowMs: number;
  /** When the source began to be one. */
  readonly startedAtMs: number;
}

/** More keys than so many are not part of a cursor: it is written with every page. */
export const MAX_KEYS = 50_000;

/** A page from which a position cannot go on. Codes and messages are for the channel's owner. */
export class PositionError extends Error {
  override readonly name = "PositionError";
  readonly code: "position_full" | "token_missing";

  constructor(code: PositionError["code"], message: string) {
    super(message);
    this.code = code;
  }
}

export const createPositionFullError = (): PositionError =>
  new PositionError(
    "position_full",
    "More items would have to be remembered one by one than a cursor can hold",
  );
