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
  readonly delete: <T>(path: string, query?: Query) => Promise<T>;
  /** Reads a paginated list until `most` items have been read or the list ends. */
  readonly list: <T>(path: string, query?: Query, most?: number) => Promise<Listed<T>>;
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
}

export interface OpenOptions {
  readonly method?: string;
  readonly query?: Query;
  readonly body?: object;
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
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
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
    const response = await open(path, options);
    if (!response.ok) throw await parseErrorResponse(response, baseUrl);
    return response;
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

  return {
    baseUrl,
    open,
    get: (path, query) => read(path, query === undefined ? {} : { query }),
    post: (path, body = {}) => read(path, { method: "POST", body }),
    put: (path, body) => read(path, { method: "PUT", body }),
    delete: (path, query) => read(path, { method: "DELETE", ...(query === undefined ? {} : { query }) }),
    async text(path, query) {
      return (await call(path, query === undefined ? {} : { query })).text();
    },
    async list<T>(path: string, query: Query = {}, most = Number.POSITIVE_INFINITY) {
      const items: T[] = [];
      for (;;) {
        const limit = Math.min(PAGE, most - items.length);
        const response = await call(path, { query: { ...query, limit, offset: items.length } });
        const page = (await response.json()) as readonly T[];
        items.push(...page);
        const total = Number(response.headers.get("x-total-count") ?? items.length);
        if (page.length === 0 || items.length >= Math.min(most, total)) return { items, total };
      }
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
  return new ApiError([text, ...lines, ...hint].join("\n"), {
    status,
    retryAfterSeconds: Number.isFinite(retryAfter) ? retryAfter : undefined,
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
