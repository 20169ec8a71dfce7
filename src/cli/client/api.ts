import { CommandError, EXIT, type ExitCode } from "../exit.ts";
import type { Credentials } from "./credentials.ts";

/** What stands in a query; undefined is left out. */
export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/** The management API of one gateway. Each call throws a `CommandError` that says what is wrong, with the exit code for it. */
export interface Api {
  readonly baseUrl: string;
  readonly get: <T>(path: string, query?: Query) => Promise<T>;
  readonly post: <T>(path: string, body?: object) => Promise<T>;
  readonly put: <T>(path: string, body: object) => Promise<T>;
  readonly delete: <T>(path: string, query?: Query) => Promise<T>;
  /** Pages of a list, until so many are there. */
  readonly list: <T>(path: string, query?: Query, most?: number) => Promise<Listed<T>>;
  /** The answer as text: parsed, its numbers could change. */
  readonly text: (path: string, query?: Query) => Promise<string>;
  /** The answer as it comes, whatever its status. @throws CommandError where none comes */
  readonly open: (path: string, options?: OpenOptions) => Promise<Response>;
}

export interface Listed<T> {
  readonly items: readonly T[];
  /** Of all pages. */
  readonly total: number;
}

export interface OpenOptions {
  readonly method?: string;
  readonly query?: Query;
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** The error that a gateway has answered. */
export class ApiRefusal extends CommandError {
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
        // A key goes nowhere else.
        redirect: "error",
        signal: ownSignal ?? AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
      });
    } catch (error) {
      if (signal.aborted || ownSignal?.aborted) throw signal.reason ?? error;
      throw new CommandError(`${baseUrl} cannot be reached: ${reasonOf(error)}`, {
        exitCode: EXIT.unavailable,
        cause: error,
      });
    }
  }

  async function call(path: string, options: OpenOptions = {}): Promise<Response> {
    const response = await open(path, options);
    if (!response.ok) throw await refusalOf(response, baseUrl);
    return response;
  }

  async function read<T>(path: string, options: OpenOptions = {}): Promise<T> {
    const response = await call(path, options);
    return (await response.json().catch((cause: unknown) => {
      throw new CommandError(`${baseUrl} does not answer as a gateway does.`, { cause });
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

/** The segments of a path, as they stand in an address. */
export const pathOf = (...segments: readonly string[]): string =>
  segments.map((segment) => `/${encodeURIComponent(segment)}`).join("");

function queryText(query: Query = {}): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)] as [string, string]],
  );
  return given.length === 0 ? "" : `?${new URLSearchParams(given)}`;
}

/** The body of an error as a message, with the exit code that goes with its status. */
export async function refusalOf(response: Response, baseUrl: string): Promise<ApiRefusal> {
  const { status } = response;
  const body = await response.json().catch(() => undefined);
  const { message, details } = (body ?? {}) as {
    readonly message?: unknown;
    readonly details?: readonly { readonly path: string; readonly message: string }[];
  };
  const lines = (Array.isArray(details) ? details : []).map(({ path, message }) => `  ${path}: ${message}`);
  const text = typeof message === "string" ? message : `${baseUrl} answers ${status}.`;
  const hint = status === 401 ? [`The key for ${baseUrl} is not accepted: run \`inlet login\`.`] : [];
  const retryAfter = Number(response.headers.get("retry-after") ?? Number.NaN);
  return new ApiRefusal([text, ...lines, ...hint].join("\n"), {
    status,
    retryAfterSeconds: Number.isFinite(retryAfter) ? retryAfter : undefined,
    exitCode: exitCodeOf(status),
  });
}

function exitCodeOf(status: number): ExitCode {
  if (status === 401 || status === 403) return EXIT.notAllowed;
  return status === 429 || status === 503 ? EXIT.unavailable : EXIT.failed;
}

/** `fetch` says only that it has failed; its cause says why. */
export function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  if (cause instanceof AggregateError && cause.errors.length > 0) return reasonOf(cause.errors[0]);
  if (!(cause instanceof Error)) return String(cause);
  const { code } = cause as NodeJS.ErrnoException;
  return code === undefined || cause.message.includes(code) ? cause.message : `${cause.message} (${code})`;
}
