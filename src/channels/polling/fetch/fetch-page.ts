import { isDeepStrictEqual } from "node:util";
import type { Clock } from "../../../lib/clock.ts";
import { err, ok, type Result } from "../../../lib/result.ts";
import type { Redact } from "../../../lib/secrets/redact.ts";
import type { AuthorizedRequest } from "../../../net/credentials.ts";
import type { OutboundRequest, OutboundResponse } from "../../../net/outbound.ts";
import { redactSent } from "../../pull/redact-sent.ts";
import { type Failed, failed, rejected } from "../../pull/source-end.ts";
import type { SourceEnd, SourceRun } from "../../source.ts";
import { selectsValue } from "../config/equals.ts";
import type { Plan } from "../config/plan.ts";
import type { CompiledDiscriminator } from "../discriminators/discriminator.ts";
import type { PageRequest } from "../pagination/page-request.ts";
import { InvalidRequestError, parseOrigin } from "../request/request-template.ts";
import type { TemplateContext } from "../request/template-values.ts";
import { type CallDeps, callServer, findNotBeforeMs, findStatusFailure } from "./call.ts";
import type { Page } from "./page.ts";
import type { PageReader } from "./page-reader.ts";
import { readValidators, type Validators, withConditions } from "./validators.ts";

export interface PageQuery {
  readonly at: PageRequest;
  readonly context: TemplateContext;
  /** URL for the first page that replaces the configured URL. */
  readonly url: string | undefined;
  /** `ETag` and `Last-Modified` from an earlier response to the first page. `undefined` if the request must be unconditional. */
  readonly validators: Validators | undefined;
}

export interface FetchedPage {
  readonly kind: "page";
  readonly page: Page;
  readonly isFirst: boolean;
  /** `undefined` after the last page. */
  readonly next: PageRequest | undefined;
  /** The page after this one if this page claims to be the last one, but the claim must be verified. */
  readonly doubtful: PageRequest | undefined;
  /** Whether the page names itself as the next page. Some servers do so on the last page instead of naming no page. */
  readonly namesItself: boolean;
  readonly redact: Redact;
  readonly validators: Validators | undefined;
  /** Time before which the server does not want another call, in ms since the Unix epoch. */
  readonly notBeforeMs: number | undefined;
  readonly bytes: number;
  readonly arrivedAtMs: number;
}

/** Result of a request for a page. `expired` means that the server no longer knows the page or the read position. */
export type Fetched =
  | FetchedPage
  | { readonly kind: "notModified"; readonly notBeforeMs: number | undefined }
  | { readonly kind: "expired"; readonly target: "page" | "position"; readonly end: Failed }
  | { readonly kind: "ended"; readonly end: SourceEnd };

/** A request and its response, to be shown in a dry run. */
export interface Exchange {
  readonly sent: AuthorizedRequest;
  readonly response: OutboundResponse | undefined;
  readonly redact: Redact;
}

export interface PageFetcherDeps extends CallDeps {
  readonly clock: Clock;
  readonly reader: Pick<PageReader, "page" | "document">;
  readonly observe?: (exchange: Exchange) => void;
}

export interface PageFetcher {
  /**
   * Fetches one page. Failures of the server are returned instead of thrown.
   * @throws the signal's reason, PathBudgetError, UnavailableError
   */
  readonly fetch: (query: PageQuery) => Promise<Fetched>;
  /** Requests the first token of a source. */
  readonly fetchToken: (
    first: NonNullable<CompiledDiscriminator["firstToken"]>,
  ) => Promise<Result<string, SourceEnd>>;
  /** Allows pages to be fetched a second time. Without this call, a repeated page counts as an endless loop. */
  readonly forget: () => void;
}

/** Response statuses that mean that the URL or token of a page, which the server issued itself, has expired. */
const PAGE_GONE: readonly number[] = [400, 404, 410];

export function createPageFetcher(
  deps: PageFetcherDeps,
  { plan, run }: { readonly plan: Plan; readonly run: Pick<SourceRun, "credentials" | "signal"> },
): PageFetcher {
  const { clock, observe, reader } = deps;
  const { pagination, config } = plan;
  const { credentials, signal } = run;
  const origin = parseOrigin(config.request);
  const requested = new Set<string>();

  /**
   * Returns an error if the request must not be sent. A request to another origin needs a connection, because the connection checks which
   * origins are allowed.
   */
  const findCallRejection = (request: OutboundRequest): SourceEnd | undefined => {
    const other = new URL(request.url).origin;
    if (credentials === undefined && other !== origin) {
      return rejected(
        "origin",
        `The next page is at ${other}, but the channel calls ${origin}. To allow that, give the channel a connection that covers both`,
      );
    }
    const name = nameOf(request);
    if (requested.has(name))
      return failed("page_repeated", "The server returned the same next page twice in one poll");
    requested.add(name);
    return undefined;
  };

  async function readAnswer(
    response: OutboundResponse,
    sent: AuthorizedRequest,
    query: PageQuery,
  ): Promise<Fetched> {
    const { at } = query;
    const { expiredOn } = plan.discriminator;
    const isFirst = at.kind === "first";
    const arrivedAtMs = clock();
    const refusal = findStatusFailure(response, config, arrivedAtMs);
    if (refusal !== undefined) {
      if (isFirst && expiredOn?.statuses.includes(response.status)) return expired("position", refusal);
      if (!isFirst && PAGE_GONE.includes(response.status)) return expired("page", refusal);
      const isExpired = expiredOn?.path !== undefined && isFirst && (await reportsExpired(response));
      return isExpired ? expired("position", refusal) : { kind: "ended", end: refusal };
    }
    const read = await reader.page(response, sent);
    if (!read.ok) {
      if (await isUnsuccessful(response)) return { kind: "ended", end: NOT_SUCCESSFUL };
      const { code, message } = read.error;
      return {
        kind: "ended",
        end: code === "content_type" ? rejected(code, message) : failed(code, message),
      };
    }
    const page = read.value;
    if (isFirst && selectsValue(page, expiredOn?.path, expiredOn?.equals)) {
      return expired("position", rejected("token_expired", "The server no longer knows the token"));
    }
    if (plan.successPath !== undefined && !selectsValue(page, plan.successPath, config.successOn.equals)) {
      return { kind: "ended", end: NOT_SUCCESSFUL };
    }
    const next = pagination.next(page, at);
    if (!next.ok)
      return { kind: "ended", end: failed("next_page", `The next page cannot be determined: ${next.error}`) };
    const namesItself = next.value !== undefined && isSelf(page, sent, [at, next.value]);
    return {
      kind: "page",
      page,
      isFirst,
      next: namesItself ? undefined : next.value,
      doubtful: next.value === undefined ? pagination.doubtful?.(page, at) : undefined,
      namesItself,
      redact: redactSent(sent),
      validators: undefined,
      notBeforeMs: findNotBeforeMs(response, config, arrivedAtMs),
      bytes: response.body.length,
      arrivedAtMs,
    };
  }

  /** Returns whether a response without readable items is an error that `successOn` recognizes. Such responses often have no items. */
  async function isUnsuccessful(response: OutboundResponse): Promise<boolean> {
    if (plan.successPath === undefined) return false;
    const read = await reader.document(response);
    return read.ok && !selectsValue(read.value, plan.successPath, config.successOn.equals);
  }

  /** Returns whether an error response says that the read position has expired. An unreadable response counts as no. */
  async function reportsExpired(response: OutboundResponse): Promise<boolean> {
    const { expiredOn } = plan.discriminator;
    const read = await reader.document(response);
    return read.ok && selectsValue(read.value, expiredOn?.path, expiredOn?.equals);
  }

  async function fetch(query: PageQuery): Promise<Fetched> {
    const { at, context, url, validators } = query;
    const parameters = at.kind === "first" && url !== undefined ? { url } : pagination.parametersOf(at);
    let request: OutboundRequest;
    try {
      request = plan.request.render(context, parameters);
    } catch (error) {
      if (!(error instanceof InvalidRequestError)) throw error;
      return { kind: "ended", end: failed("request", error.message) };
    }
    const refusal = findCallRejection(request);
    if (refusal !== undefined) return { kind: "ended", end: refusal };
    const conditional = withConditions(request, validators);
    const { answer, sent } = await callServer(deps, {
      request: conditional,
      urlField: at.kind === "first" ? "`request.url`" : "a page after `request.url`",
      config,
      credentials,
      signal,
    });
    const response = "kind" in answer ? undefined : answer;
    observe?.({ sent, response, redact: redactSent(sent) });
    if ("kind" in answer) return { kind: "ended", end: answer };
    if (answer.status === 304 && conditional !== request) {
      return { kind: "notModified", notBeforeMs: findNotBeforeMs(answer, config, clock()) };
    }
    const fetched = await readAnswer(answer, sent, query);
    if (fetched.kind !== "page" || at.kind !== "first") return fetched;
    return { ...fetched, validators: readValidators(request, answer) };
  }

  const fetchToken: PageFetcher["fetchToken"] = async ({ url, path }) => {
    const request: OutboundRequest = { method: "GET", url, headers: { accept: "application/json" } };
    const refusal = findCallRejection(request);
    if (refusal !== undefined) return err(refusal);
    const { answer, sent } = await callServer(deps, {
      request,
      urlField: "`discriminator.first`",
      config,
      credentials,
      signal,
    });
    const response = "kind" in answer ? undefined : answer;
    observe?.({ sent, response, redact: redactSent(sent) });
    if ("kind" in answer) return err(answer);
    const failure = findStatusFailure(answer, config, clock());
    if (failure !== undefined) return err(failure);
    const read = await reader.document(answer);
    const token = read.ok ? read.value.read(path) : undefined;
    return typeof token === "string" && token !== ""
      ? ok(token)
      : err(rejected("token_missing", `The response to \`discriminator.first\` has no text at ${path.text}`));
  };

  return { fetch, fetchToken, forget: () => requested.clear() };
}

const isSelf = (
  page: Page,
  sent: AuthorizedRequest,
  [at, next]: readonly [PageRequest, PageRequest],
): boolean =>
  next.kind === "url"
    ? [sent.request.url, ""].some((url) => page.addressOf(url) === next.url)
    : isDeepStrictEqual(at, next);

const nameOf = ({ body, headers, url }: OutboundRequest): string =>
  JSON.stringify([url, headers, String(body ?? "")]);

const NOT_SUCCESSFUL = failed("not_successful", "The response does not match `successOn`");

const expired = (target: "page" | "position", end: Failed): Fetched => ({ kind: "expired", target, end });
