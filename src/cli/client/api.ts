import { setTimeout as delay } from "node:timers/promises";
import { parseExactly } from "../../event/exact-json.ts";
import { CommandError, EXIT, type ExitCode } from "../exit.ts";
import type { Credentials } from "./credentials.ts";

/** Query parameters. `undefined` values are omitted. */
export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/** Client for the management API of one gateway. If a call fails, it throws a `CommandError` with a message and an exit code. */
export interface Api {
  readonly baseUrl: string;
  readonly get: <T>(path: string, query?: Query) => Promise<T>;
  readonly post: <T>(path: string, body?: object) => Promise<T>;
  readonly put: <T>(path: string, body: object) => Promise<T>;
  /** Reads an entity, and writes the fields that `change` returns. Fails if another request changes the entity meanwhile. */
  readonly update: <T>(path: string, change: (entity: T) => object) => Promise<T>;
  readonly delete: <T>(path: string, query?: Query) => Promise<T>;
  /** Reads a paginated list until `most` items have been read or the list ends. */
  readonly list: <T>(path: string, query?: Query, most?: number) => Promise<Listed<T>>;
  /**
   * Reads a list that is paged by a cursor, until `most` items have been read or the list ends. `onPage` is called after each page with
   * the progress of a search: the number of items that it has scanned, and the total.
   */
  readonly listNewest: <T>(
    path: string,
    query?: Query,
    most?: number,
    onPage?: (scanned: number, total: number) => void,
  ) => Promise<Listed<T>>;
  /** Yields the items of a list that is paged by a cursor while its pages are read. */
  readonly newestItems: <T>(path: string, query?: Query) => AsyncGenerator<T, void, undefined>;
  /** Yields the items of a list while its pages are read. */
  readonly items: <T>(path: string) => AsyncGenerator<T, void, undefined>;
  /** Returns the response body as text, because parsing JSON could change large numbers. */
  readonly text: (path: string, query?: Query) => Promise<string>;
  /**
   * Sends a request and returns the response with any HTTP status.
   *
   * @throws CommandError if the gateway does not respond
   */
  readonly open: (path: string, options?: OpenOptions) => Promise<Response>;
}

export interface Listed<T> {
  readonly items: readonly T[];
  /** Total number of items in the list, including items that were not read. */
  readonly total: number;
  /** Number of items that a search has scanned for this page. */
  readonly scanned?: number;
}

export interface OpenOptions {
  readonly method?: string;
  readonly query?: Query;
  /** Body to serialize, or JSON text that is sent unchanged. */
  readonly body?: object | string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export class ApiError extends CommandError {
  readonly status: number;
  readonly retryAfterSeconds: number | undefined;

  constructor(
    message: string,
    options: {
      readonly status: number;
      readonly retryAfterSeconds: number | undefined;
      readonly exitCode: ExitCode;
    },
  ) {
    super(message, options);
    this.status = options.status;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}

const PAGE = 200;
const TIMEOUT_MS = 60_000;
/** A read is repeated this often if the gateway is busy, and if it asks to wait for at most this long. */
const RETRIES = { count: 3, maxWaitSeconds: 5 } as const;

export function createApi({ baseUrl, apiKey }: Credentials, signal: AbortSignal): Api {
  async function open(path: string, options: OpenOptions = {}): Promise<Response> {
    const { method = "GET", query, body, headers, signal: ownSignal } = options;
    const url = `${baseUrl}${path}${queryText(query)}`;
    try {
      return await fetch(url, {
        method,
        headers: {
          authorization: `Bearer ${apiKey}`,
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
        // Reject redirects, because following one could send the API key to another server.
        redirect: "error",
        signal: ownSignal ?? AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
      });
    } catch (error) {
      if (signal.aborted || ownSignal?.aborted) throw signal.reason ?? error;
      throw new CommandError(`${baseUrl} cannot be reached: ${formatCause(error)}`, {
        exitCode: EXIT.unavailable,
        cause: error,
      });
    }
  }

  async function call(path: string, options: OpenOptions = {}): Promise<Response> {
    for (let retries = 0; ; retries++) {
      const response = await open(path, options);
      if (response.ok) return response;
      const error = await parseErrorResponse(response, baseUrl);
      const { status, retryAfterSeconds = Number.POSITIVE_INFINITY } = error;
      const isRead = options.method === undefined;
      const isShortWait = status === 503 && retryAfterSeconds <= RETRIES.maxWaitSeconds;
      if (!isRead || !isShortWait || retries === RETRIES.count) throw error;
      await delay(retryAfterSeconds * 1_000, undefined, { signal });
    }
  }

  async function read<T>(path: string, options: OpenOptions = {}): Promise<T> {
    const response = await call(path, options);
    return (await response.json().catch((cause: unknown) => {
      throw new CommandError(
        `${baseUrl} did not return JSON. Check that this is the address of an Inlet gateway.`,
        { cause },
      );
    })) as T;
  }

  async function* pages<T>(
    path: string,
    query: Query = {},
    most = Number.POSITIVE_INFINITY,
  ): AsyncGenerator<Listed<T>, void, undefined> {
    for (let offset = 0; offset < most; ) {
      const limit = Math.min(PAGE, most - offset);
      const response = await call(path, { query: { ...query, limit, offset } });
      const items = (await response.json()) as readonly T[];
      offset += items.length;
      const total = Number(response.headers.get("x-total-count") ?? offset);
      yield { items, total };
      if (items.length === 0 || offset >= total) return;
    }
  }

  async function* newestPages<T>(
    path: string,
    query: Query = {},
    most = Number.POSITIVE_INFINITY,
  ): AsyncGenerator<Listed<T>, void, undefined> {
    let cursor: string | undefined;
    for (let count = 0; count < most; ) {
      const limit = Math.min(PAGE, most - count);
      const response = await call(path, { query: { ...query, limit, cursor } });
      const items = parseExactly(await response.text()) as readonly T[];
      count += items.length;
      yield {
        items,
        total: Number(response.headers.get("x-total-count") ?? count),
        scanned: Number(response.headers.get("x-scanned-count") ?? items.length),
      };
      cursor = response.headers.get("x-next-cursor") ?? undefined;
      if (cursor === undefined) return;
    }
  }

  async function readAll<T>(
    all: AsyncIterable<Listed<T>>,
    onPage?: (scanned: number, total: number) => void,
  ): Promise<Listed<T>> {
    const items: T[] = [];
    let [total, scanned] = [0, 0];
    for await (const page of all) {
      items.push(...page.items);
      total = page.total;
      scanned += page.scanned ?? page.items.length;
      onPage?.(scanned, total);
    }
    return { items, total };
  }

  return {
    baseUrl,
    open,
    async *items<T>(path: string) {
      for await (const page of pages<T>(path)) yield* page.items;
    },
    get: (path, query) => read(path, query === undefined ? {} : { query }),
    post: (path, body = {}) => read(path, { method: "POST", body }),
    put: (path, body) => read(path, { method: "PUT", body }),
    async update<T>(path: string, change: (entity: T) => object) {
      const response = await call(path);
      const etag = response.headers.get("etag");
      const body = change(parseExactly(await response.text()) as T);
      return read<T>(path, { method: "PUT", body, headers: etag === null ? {} : { "if-match": etag } });
    },
    delete: (path, query) => read(path, { method: "DELETE", ...(query === undefined ? {} : { query }) }),
    async text(path, query) {
      return (await call(path, query === undefined ? {} : { query })).text();
    },
    list: (path, query, most) => readAll(pages(path, query, most)),
    listNewest: (path, query, most, onPage) => readAll(newestPages(path, query, most), onPage),
    async *newestItems<T>(path: string, query?: Query) {
      for await (const page of newestPages<T>(path, query)) yield* page.items;
    },
  };
}

/** Formats URL path segments, percent-encoded. */
export const formatPath = (...segments: readonly string[]): string =>
  segments.map((segment) => `/${encodeURIComponent(segment)}`).join("");

function queryText(query: Query = {}): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)] as [string, string]],
  );
  return given.length === 0 ? "" : `?${new URLSearchParams(given)}`;
}

/** Creates the error for an error response. Its exit code depends on the HTTP status. */
export async function parseErrorResponse(response: Response, baseUrl: string): Promise<ApiError> {
  const { status } = response;
  const body = await response.json().catch(() => undefined);
  const { message, details } = (body ?? {}) as {
    readonly message?: unknown;
    readonly details?: readonly { readonly path: string; readonly message: string }[];
  };
  const lines = (Array.isArray(details) ? details : []).map(({ path, message }) => `  ${path}: ${message}`);
  const text = typeof message === "string" ? message : `${baseUrl} returned status ${status}.`;
  const hint =
    status === 401 ? [`${baseUrl} rejected the API key. Run \`inlet login\` to store another one.`] : [];
  const retryAfter = Number(response.headers.get("retry-after") ?? Number.NaN);
  const retryAfterSeconds = Number.isFinite(retryAfter) ? retryAfter : undefined;
  const first =
    retryAfterSeconds === undefined
      ? text
      : `${text.replace(/ Try again(?: later)?\.$/, "")} Retry in ${retryAfterSeconds} s.`;
  return new ApiError([first, ...lines, ...hint].join("\n"), {
    status,
    retryAfterSeconds,
    exitCode: exitCodeOf(status),
  });
}

function exitCodeOf(status: number): ExitCode {
  if (status === 401 || status === 403) return EXIT.notAllowed;
  return status === 429 || status === 503 ? EXIT.unavailable : EXIT.failed;
}

/** Returns the message of an error's cause, because errors of `fetch` themselves only state that the request failed. */
export function formatCause(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  if (cause instanceof AggregateError && cause.errors.length > 0) return formatCause(cause.errors[0]);
  if (!(cause instanceof Error)) return String(cause);
  const { code } = cause as NodeJS.ErrnoException;
  return code === undefined || cause.message.includes(code) ? cause.message : `${cause.message} (${code})`;
}
