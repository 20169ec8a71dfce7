import type { Page, PageItem } from "../fetch/page.ts";
import type { PageRequest } from "../pagination/page-request.ts";
import type { TemplateValue } from "../request/template-values.ts";

/**
 * The position of a source during one poll.
 * The poll calls `cursor` to build the request. For each page it calls `select`, then publishes the selected items in one or more writes.
 * Before each write it calls `add` with the items of that write, and stores the result of `save` in the same write. Before the last write
 * of a page it also calls `endPage`. After the last page it calls `endWalk`.
 * The saved state includes exactly the items added so far, so a poll may end after any write. After a failed write, the position must not
 * be used any more.
 */
export interface Position {
  /** The value of `{{cursor}}` for the first page of a poll. `undefined` if there is no value yet. */
  readonly cursor: () => TemplateValue | undefined;
  /**
   * The value of `{{cursor}}` when reading restarts at the first page after a page had new items. Positions without this method never
   * restart for that reason.
   */
  readonly head?: () => TemplateValue | undefined;
  readonly url?: () => string | undefined;
  /** The page at which to continue, if an earlier poll was interrupted between pages. */
  readonly resumeAt?: () => PageRequest | undefined;
  /** True while the first poll only remembers the existing items without publishing them, because of `startAt: "now"`. */
  readonly isPriming: () => boolean;
  /** How many more items the position can remember. While the number is negative, the position must not be stored. */
  readonly remainingCapacity: () => number;
  /** Returns the new items of the page, in the order in which to publish them. */
  readonly select: (page: Page) => readonly PageItem[];
  readonly add: (items: readonly PageItem[]) => void;
  /** Returns whether all items after this page are already known. Only used when pages list the newest items first. */
  readonly reachesKnown: (page: Page) => boolean;
  /**
   * Completes a page. Returns true if a request from the new position would return further items without a wait.
   * @param next the page that follows, if any
   */
  readonly endPage: (page: Page, next: PageRequest | undefined) => boolean;
  /** Called after the last page. `pages` is the number of pages read. */
  readonly endWalk: (pages: number) => void;
  /** Returns true if pages had items, but all of them were below the position. The server may have restarted its numbering. */
  readonly isBehind?: () => boolean;
  /** Called when the server reports that the content is the same as at the last poll. */
  readonly unchanged?: () => void;
  /** Called when the server no longer knows the page or the position. Returns false if the position cannot recover from that. */
  readonly expire?: (target: "page" | "position") => boolean;
  /** Returns a JSON value from which `restore` creates an equal position. */
  readonly save: () => unknown;
}

export interface PositionContext {
  readonly nowMs: number;
  /** When the source first ran or was last reset, in ms since the Unix epoch. */
  readonly startedAtMs: number;
}

/** Maximum number of item keys in a cursor. The limit exists because the cursor is written with every page. */
export const MAX_KEYS = 50_000;

/** Thrown when a page lacks the value that the next position needs. The code and message are shown to the channel's owner. */
export class PositionError extends Error {
  override readonly name = "PositionError";
  readonly code: "position_full" | "token_missing";

  constructor(code: PositionError["code"], message: string) {
    super(message);
    this.code = code;
  }
}

export const createPositionFullError = (): PositionError =>
  new PositionError("position_full", "The poll returned more items than a cursor can remember");
