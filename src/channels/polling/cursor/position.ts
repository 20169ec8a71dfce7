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
  /** Value of the placeholder `{{cursor}}` in the first request of a poll. `undefined` if no value is known yet. */
  readonly cursor: () => TemplateValue | undefined;
  /**
   * Value of `{{cursor}}` when a poll starts over from the first page because a page had new items. Without this method, polls never start
   * over for that reason.
   */
  readonly head?: () => TemplateValue | undefined;
  readonly url?: () => string | undefined;
  /** Starts at a token that stands for now, so that no existing items are returned. */
  readonly startAt?: (token: string) => void;
  /** Page at which this poll continues, because an earlier poll stopped before it had read all pages. */
  readonly resumeAt?: () => PageRequest | undefined;
  /**
   * Called when limits end a walk whose newest items come first before it has reached a known item. `next` is the first page that was not
   * read, and `last` the page before it. The next poll continues at `next`. Without this method, such a poll fails.
   */
  readonly interruptWalk?: (next: PageRequest, last: Page) => void;
  /** Called when an interrupted walk has reached a known item. `hasNew` tells whether the pages since its interruption have new items. */
  readonly resumeWalk?: (hasNew: boolean) => void;
  /** Whether this first poll only remembers existing items, without publishing them, because of `startAt: "now"`. */
  readonly isPriming: () => boolean;
  /** Number of further items that the position can remember. A negative number means that the position is too large to store. */
  readonly remainingCapacity: () => number;
  /** Returns the new items of the page, in the order in which to publish them. */
  readonly select: (page: Page) => readonly PageItem[];
  readonly add: (items: readonly PageItem[]) => void;
  /**
   * Called for each page of a poll, in the order in which they are read, before the page's items are selected. Throws a `PositionError` if
   * the items contradict the settings, because the position would then lose items. Returns the error if the page contradicts `order`, but
   * may be complete. In that case, the page must not be published before the next page has been checked.
   */
  readonly check?: (
    page: Page,
    options: { readonly isFirst: boolean; readonly warn: (code: string, message: string) => void },
  ) => PositionError | undefined;
  /** Called for the first page of a poll, before it is checked. */
  readonly adjustStart?: (
    page: Page,
    options: { readonly arrivedAtMs: number; readonly warn: (code: string, message: string) => void },
  ) => void;
  /** Sets the position back to the state before the current walk, but keeps the published items in mind. */
  readonly revert?: () => void;
  /** Returns whether all later pages contain only known items. Used when the newest items come first, to stop reading early. */
  readonly reachesKnown: (page: Page) => boolean;
  /**
   * Called after all items of a page were added. Returns true if a new request would immediately return more items.
   * @param next the page that follows, if any
   */
  readonly endPage: (page: Page, next: PageRequest | undefined) => boolean;
  /** Called after the last page of a poll. `pages` is the number of pages that were read. */
  readonly endWalk: (pages: number) => void;
  /** Returns whether the poll found only items older than the position. In that case, the server may have restarted its numbering. */
  readonly isBehind?: () => boolean;
  /** Whether the poll left out items that are too young to be published. A later poll must see them again. */
  readonly hasUnsettled?: () => boolean;
  /** Called when the server responds that the content has not changed since the last poll. */
  readonly unchanged?: () => void;
  /** Called when the server no longer knows the requested page or the position. Returns false if the position cannot recover. */
  readonly expire?: (target: "page" | "position") => boolean;
  /** Converts the position to JSON for storage. `restore` converts it back. */
  readonly save: () => unknown;
}

export interface PositionContext {
  readonly nowMs: number;
  /** When the source first ran or was last reset, in ms since the Unix epoch. */
  readonly startedAtMs: number;
  /** Whether the source started more than one poll interval ago. */
  readonly isLate: boolean;
}

/** Maximum number of item keys in a stored position. The limit keeps writes small, because every page writes the whole position. */
export const MAX_KEYS = 50_000;

/** Thrown when the read position cannot move past a page. Its code and message are shown to the channel's owner. */
export class PositionError extends Error {
  override readonly name = "PositionError";
  readonly code: "has_more" | "order" | "position_full" | "position_missing" | "token_missing";

  constructor(code: PositionError["code"], message: string) {
    super(message);
    this.code = code;
  }
}

export const createPositionFullError = (): PositionError =>
  new PositionError("position_full", "The poll returned more items than a cursor can remember");
