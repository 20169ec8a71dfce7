import { err, ok, type Result } from "../../../lib/result.ts";
import type { RulePath } from "../../../normalize/compile.ts";
import type { PathReader } from "../config/paths.ts";
import type { Page } from "../fetch/page.ts";
import type { PageParameters } from "../request/request-template.ts";
import { compileEnding } from "./ending.ts";
import { findLink } from "./link-header.ts";
import type { PageRequest } from "./page-request.ts";
import type { PaginationConfig } from "./schema.ts";

export interface Pagination {
  readonly maxPages: number;
  readonly maxItems: number;
  /** Whether pages are selected by number or offset. If so, an added or deleted item shifts all later pages. */
  readonly isCounted: boolean;
  readonly parametersOf: (at: PageRequest) => PageParameters;
  /** Returns the page to request after this one, or `undefined` after the last page. Error messages are shown to the channel's owner. */
  readonly next: (page: Page, at: PageRequest) => Result<PageRequest | undefined, string>;
  /**
   * Returns the page after a page that claims to be the last one, so that the claim can be verified. A wrong setting would read only the
   * first page forever. `undefined` if there is no such page, or once the setting has been verified.
   */
  readonly doubtful?: (page: Page, at: PageRequest) => PageRequest | undefined;
  /** Called with whether the doubtful page has items. Returns an error message if the setting is wrong. */
  readonly settleDoubt?: (hasItems: boolean) => string | undefined;
}

/** Pagination of channels that have no pagination settings. */
const ONE_PAGE: Pagination = {
  maxPages: 1,
  maxItems: Number.POSITIVE_INFINITY,
  isCounted: false,
  parametersOf: () => ({}),
  next: () => ok(undefined),
};

/** Maximum length of a page token or URL, in characters. */
const MAX_CHARS = 16_384;

export function createPagination(config: PaginationConfig | undefined, paths: PathReader): Pagination {
  if (config === undefined) return ONE_PAGE;
  const { maxItems, maxPages } = config;
  const path = "path" in config ? paths.ofPage(config.path, "pagination.path") : undefined;
  const ending = compileEnding(config, paths);
  // A setting that says which page is the last one is more reliable than the size of a page.
  const isSized = ending !== undefined && "pageSize" in config;
  const way = createStrategy(isSized ? { ...config, pageSize: undefined } : config, path);
  if (ending === undefined) return { ...way, maxItems, maxPages };
  let isProven = false;
  return {
    ...way,
    maxItems,
    maxPages,
    next(page, at) {
      const hasMore = ending.hasMore(page);
      if (!hasMore.ok) return hasMore;
      if (!hasMore.value) return ok(undefined);
      isProven = true;
      const following = way.next(page, at);
      const isMissing = following.ok && following.value === undefined;
      return isMissing ? err(`${ending.setting} says that there are more pages, but ${NO_NEXT}`) : following;
    },
    doubtful(page, at) {
      if (isProven || page.items.length === 0) return undefined;
      const following = way.next(page, at);
      return following.ok ? following.value : undefined;
    },
    settleDoubt(hasItems) {
      isProven = !hasItems;
      return hasItems ? `${ending.setting} says that the page is the last one, but ${MORE_ITEMS}` : undefined;
    },
  };
}

const MORE_ITEMS = "the next page has more items. If the value is true on the last page, use `lastPagePath`";
const NO_NEXT =
  "this page has no items, or does not say which page is next. If the value is true on the last page, use `lastPagePath`";

type PaginationStrategy = Omit<Pagination, "maxItems" | "maxPages">;

function createStrategy(config: PaginationConfig, path: RulePath | undefined): PaginationStrategy {
  switch (config.by) {
    case "linkHeader":
      return byAddress((page) => findLink(page.headers.link, config.relation));
    case "nextUrlPath":
      return byAddress((page) => path && page.read(path));
    case "cursorToken":
      return byToken(config, path);
    case "offset":
      return byNumber({ ...config, first: 0 }, (items) => items);
    case "page":
      return byNumber(config, () => 1);
    default:
      return config satisfies never;
  }
}

const byAddress = (find: (page: Page) => unknown): PaginationStrategy => ({
  isCounted: false,
  parametersOf: (at) => (at.kind === "url" ? { url: at.url } : {}),
  next(page) {
    const found = find(page);
    if (isEmptyValue(found)) return ok(undefined);
    const url = isText(found) ? page.addressOf(found) : undefined;
    return url === undefined ? err("the URL of the next page is not valid") : ok({ kind: "url", url });
  },
});

const byToken = (
  config: Extract<PaginationConfig, { by: "cursorToken" }>,
  path: RulePath | undefined,
): PaginationStrategy => ({
  isCounted: false,
  parametersOf: (at) =>
    at.kind !== "token"
      ? {}
      : { page: at.token, ...(config.name !== undefined && { [config.in]: { [config.name]: at.token } }) },
  next(page) {
    const found = path && page.read(path);
    if (isEmptyValue(found)) return ok(undefined);
    return isText(found)
      ? ok({ kind: "token", token: found })
      : err("the token of the next page is not valid");
  },
});

function byNumber(
  {
    first,
    pageSize = 1,
    param,
  }: Pick<Extract<PaginationConfig, { by: "page" }>, "first" | "pageSize" | "param">,
  step: (items: number) => number,
): PaginationStrategy {
  const numberOf = (at: PageRequest): number => (at.kind === "number" ? at.number : first);
  return {
    isCounted: true,
    parametersOf(at) {
      const page = String(numberOf(at));
      return param === undefined ? { page } : { page, query: { [param]: page } };
    },
    next: ({ itemCount }, at) =>
      itemCount < pageSize || itemCount === 0
        ? ok(undefined)
        : ok({ kind: "number", number: numberOf(at) + step(itemCount) }),
  };
}

const isEmptyValue = (found: unknown): boolean =>
  found === undefined || found === null || found === "" || found === false;

const isText = (found: unknown): found is string => typeof found === "string" && found.length <= MAX_CHARS;
