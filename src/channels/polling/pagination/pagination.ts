import { err, ok, type Result } from "../../../lib/result.ts";
import type { RulePath } from "../../../normalize/compile.ts";
import type { Page } from "../fetch/page.ts";
import type { PageParameters } from "../request/request-template.ts";
import type { PathReader } from "../settings/paths.ts";
import { findLink } from "./link-header.ts";
import type { PageRequest } from "./page-request.ts";
import type { PaginationSettings } from "./settings.ts";

/** How one page leads to the next. */
export interface Pagination {
  readonly maxPages: number;
  readonly maxItems: number;
  /** True where pages are counted from the first, so that an item that goes or comes meanwhile shifts all behind it. */
  readonly counts: boolean;
  /** The parts of the request that ask for this page. */
  readonly parametersOf: (at: PageRequest) => PageParameters;
  /** The value of `{{page}}`. */
  readonly numberOf: (at: PageRequest) => string | undefined;
  /** The page after this one; undefined after the last. The error is for the channel's owner. */
  readonly next: (page: Page, at: PageRequest) => Result<PageRequest | undefined, string>;
}

/** Where an answer is all there is. */
const ONE_PAGE: Pagination = {
  maxPages: 1,
  maxItems: Number.POSITIVE_INFINITY,
  counts: false,
  parametersOf: () => ({}),
  numberOf: () => undefined,
  next: () => ok(undefined),
};

/** Longer ones are no addresses or tokens. */
const MAX_CHARS = 16_384;

export function createPagination(settings: PaginationSettings | undefined, paths: PathReader): Pagination {
  if (settings === undefined) return ONE_PAGE;
  const { maxItems, maxPages } = settings;
  const guards = { maxItems, maxPages };
  switch (settings.by) {
    case "linkHeader":
      return byAddress(guards, (page) => findLink(page.headers.link, settings.relation));
    case "nextUrlPath": {
      const path = paths.ofPage(settings.path, "pagination.path");
      return byAddress(guards, (page) => path && page.read(path));
    }
    case "cursorToken": {
      const path = paths.ofPage(settings.path, "pagination.path");
      const hasMore = paths.ofPage(settings.hasMorePath, "pagination.hasMorePath");
      return byToken({ ...guards, ...settings }, path, hasMore);
    }
    case "offset": {
      const hasMore = paths.ofPage(settings.hasMorePath, "pagination.hasMorePath");
      return byNumber({ ...settings, first: 0, step: (items) => items }, hasMore);
    }
    case "page": {
      const hasMore = paths.ofPage(settings.hasMorePath, "pagination.hasMorePath");
      return byNumber({ ...settings, step: () => 1 }, hasMore);
    }
    default:
      return settings satisfies never;
  }
}

function byAddress(
  guards: Pick<Pagination, "maxItems" | "maxPages">,
  find: (page: Page) => unknown,
): Pagination {
  return {
    ...guards,
    counts: false,
    parametersOf: (at) => (at.kind === "url" ? { url: at.url } : {}),
    numberOf: () => undefined,
    next(page) {
      const found = find(page);
      if (isNothing(found)) return ok(undefined);
      const url = isText(found) ? page.addressOf(found) : undefined;
      return url === undefined ? err("the address of the next page is none") : ok({ kind: "url", url });
    },
  };
}

function byToken(
  settings: Extract<PaginationSettings, { by: "cursorToken" }>,
  path: RulePath | undefined,
  hasMore: RulePath | undefined,
): Pagination {
  const { maxItems, maxPages, name } = settings;
  return {
    maxItems,
    maxPages,
    counts: false,
    parametersOf(at) {
      if (at.kind !== "token" || name === undefined) return {};
      return { [settings.in]: { [name]: at.token } };
    },
    numberOf: (at) => (at.kind === "token" ? at.token : undefined),
    next(page) {
      const found = path && page.read(path);
      if (isNothing(found) || !saysMore(page, hasMore)) return ok(undefined);
      return isText(found) ? ok({ kind: "token", token: found }) : err("the token of the next page is none");
    },
  };
}

function byNumber(
  settings: {
    readonly maxItems: number;
    readonly maxPages: number;
    readonly first: number;
    readonly pageSize?: number | undefined;
    readonly param?: string | undefined;
    readonly step: (items: number) => number;
  },
  hasMore: RulePath | undefined,
): Pagination {
  const { first, maxItems, maxPages, pageSize = 1, param, step } = settings;
  const numberOf = (at: PageRequest): number => (at.kind === "number" ? at.number : first);
  return {
    maxItems,
    maxPages,
    counts: true,
    parametersOf: (at) => (param === undefined ? {} : { query: { [param]: String(numberOf(at)) } }),
    numberOf: (at) => String(numberOf(at)),
    next(page, at) {
      const { itemCount } = page;
      if (itemCount < pageSize || itemCount === 0 || !saysMore(page, hasMore)) return ok(undefined);
      return ok({ kind: "number", number: numberOf(at) + step(itemCount) });
    },
  };
}

const isNothing = (found: unknown): boolean =>
  found === undefined || found === null || found === "" || found === false;

const isText = (found: unknown): found is string => typeof found === "string" && found.length <= MAX_CHARS;

const saysMore = (page: Page, path: RulePath | undefined): boolean =>
  path === undefined || isTrue(page.read(path));

/** XML has texts alone. */
export const isTrue = (value: unknown): boolean => value === true || value === "true";
