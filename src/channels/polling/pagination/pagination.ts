import { err, ok, type Result } from "../../../lib/result.ts";
import type { RulePath } from "../../../normalize/compile.ts";
import type { PathReader } from "../config/paths.ts";
import type { Page } from "../fetch/page.ts";
import type { PageParameters } from "../request/request-template.ts";
import { findLink } from "./link-header.ts";
import type { PageRequest } from "./page-request.ts";
import type { PaginationConfig } from "./schema.ts";

export interface Pagination {
  readonly maxPages: number;
  readonly maxItems: number;
  /** Whether pages are selected by number or offset. If so, an added or deleted item shifts all later pages. */
  readonly isCounted: boolean;
  readonly parametersOf: (at: PageRequest) => PageParameters;
  /** Returns the value of `{{page}}`, or `undefined` if the page has no number. */
  readonly numberOf: (at: PageRequest) => string | undefined;
  /** Returns the page to request after this one, or `undefined` after the last page. Error messages are shown to the channel's owner. */
  readonly next: (page: Page, at: PageRequest) => Result<PageRequest | undefined, string>;
}

/** Pagination of channels that have no pagination settings. */
const ONE_PAGE: Pagination = {
  maxPages: 1,
  maxItems: Number.POSITIVE_INFINITY,
  isCounted: false,
  parametersOf: () => ({}),
  numberOf: () => undefined,
  next: () => ok(undefined),
};

/** Maximum length of a page token or URL, in characters. */
const MAX_CHARS = 16_384;

export function createPagination(config: PaginationConfig | undefined, paths: PathReader): Pagination {
  if (config === undefined) return ONE_PAGE;
  const { maxItems, maxPages } = config;
  const path = "path" in config ? paths.ofPage(config.path, "pagination.path") : undefined;
  const hasMore =
    "hasMorePath" in config ? paths.ofPage(config.hasMorePath, "pagination.hasMorePath") : undefined;
  const way = createStrategy(config, path);
  const next: Pagination["next"] = (page, at) =>
    hasMore === undefined || isTrue(page.read(hasMore)) ? way.next(page, at) : ok(undefined);
  return { ...way, maxItems, maxPages, next };
}

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
  numberOf: () => undefined,
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
    at.kind === "token" && config.name !== undefined ? { [config.in]: { [config.name]: at.token } } : {},
  numberOf: (at) => (at.kind === "token" ? at.token : undefined),
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
    parametersOf: (at) => (param === undefined ? {} : { query: { [param]: String(numberOf(at)) } }),
    numberOf: (at) => String(numberOf(at)),
    next: ({ itemCount }, at) =>
      itemCount < pageSize || itemCount === 0
        ? ok(undefined)
        : ok({ kind: "number", number: numberOf(at) + step(itemCount) }),
  };
}

const isEmptyValue = (found: unknown): boolean =>
  found === undefined || found === null || found === "" || found === false;

const isText = (found: unknown): found is string => typeof found === "string" && found.length <= MAX_CHARS;

/** Returns whether a value is true. XML has only text values, so the string `"true"` counts as true. */
export const isTrue = (value: unknown): boolean => value === true || value === "true";
