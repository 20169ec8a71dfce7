import type { Page, PageItem } from "../fetch/page.ts";
import type { PageRequest } from "../pagination/page-request.ts";
import type { TemplateValue } from "../request/template-values.ts";

/**
 * The position of a source during one poll. The poll calls `cursor` for the request. For each page it calls `select`, then `add` for some
 * of the selected items at a time, just before the write that publishes them with the result of `save`. With the last items of a page it
 * calls `endPage`, and after the last page `endWalk`.
 * The saved state covers exactly the items added before, so a poll may end after any write. After a failed write, the position must not be
 * used any more.
 */
export interface Position {
  /** The value of `{{cursor}}` when a walk over the pages starts. `undefined` if there is no value yet. */
  readonly cursor: () => TemplateValue | undefined;
  /** The value of `{{cursor}}` when a walk restarts after the last page. Walks of a position without `head` never restart. */
  readonly head?: () => TemplateValue | undefined;
  /** A URL that replaces the request's own. */
  readonly url?: () => string | undefined;
  /** The page at which an earlier walk was interrupted. */
  readonly resumeAt?: () => PageRequest | undefined;
  /** True while items are only remembered, not selected, because of `startAt: "now"`. */
  readonly isPriming: () => boolean;
  /** How many more items can be added. While negative, the position must not be written. */
  readonly remainingCapacity: () => number;
  /** The page's new items, in the order to publish them. */
  readonly select: (page: Page) => readonly PageItem[];
  readonly add: (items: readonly PageItem[]) => void;
  /** In newest-first order: whether all items after this page are known. */
  readonly reachesKnown: (page: Page) => boolean;
  /** Completes a page. `next` is the following page. Returns true if more items are available at once from the new position. */
  readonly endPage: (page: Page, next: PageRequest | undefined) => boolean;
  /** Completes a walk over all pages. `pages` is the number of pages read. */
  readonly endWalk: (pages: number) => void;
  /** Whether pages had items, but all of them below the position. The server may have restarted its numbering. */
  readonly isBehind?: () => boolean;
  /** Called when the server reports that the content has not changed since the last poll. */
  readonly unchanged?: () => void;
  /** Called when the server no longer knows the page or the position. Returns false if the position cannot recover. */
  readonly expire?: (target: "page" | "position") => boolean;
  /** Returns JSON for `restore`. */
  readonly save: () => unknown;
}

/** Inputs for creating a position. */
export interface PositionContext {
  readonly nowMs: number;
  /** When the source first ran or was last reset. */
  readonly startedAtMs: number;
}

/** Maximum number of keys in a cursor. The cursor is written with every page, so it must stay small. */
export const MAX_KEYS = 50_000;

/** Thrown when a page does not allow the position to continue. The code and message are shown to the channel's owner. */
export class PositionError extends Error {
  override readonly name = "PositionError";
  readonly code: "position_full" | "token_missing";

  constructor(code: PositionError["code"], message: string) {
    super(message);
    this.code = code;
  }
}

export const createPositionFullError = (): PositionError =>
  new PositionError("position_full", "The poll has more items to remember than a cursor can hold");
