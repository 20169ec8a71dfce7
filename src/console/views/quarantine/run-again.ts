import { ApiError } from "../../api/api-error.ts";
import { api, type Schemas } from "../../api/client.ts";
import type { Scope } from "./records.ts";

type Result = Schemas["RedriveResult"];

/** Items to process again: all that match filters, or those with the given ids, in order of arrival. */
export type Target =
  | { readonly is: "scope"; readonly scope: Scope; readonly count: number }
  | { readonly is: "items"; readonly ids: readonly string[] };

export type Counts = Readonly<Record<Result["status"], number>>;
export const NO_COUNTS: Counts = { released: 0, kept: 0, refused: 0, unavailable: 0 };

export const countOf = (target: Target): number => (target.is === "scope" ? target.count : target.ids.length);

/** API calls of a quarantine. */
export interface QuarantineCalls {
  readonly list: (
    query: Scope & { readonly limit: number },
    signal: AbortSignal,
  ) => Promise<{ readonly rows: readonly Pick<Schemas["QuarantineRecord"], "id" | "firstAt">[] }>;
  readonly redrive: (
    body: Scope & { readonly limit: number },
    signal: AbortSignal,
  ) => Promise<readonly Pick<Result, "id" | "status">[]>;
  readonly redriveOne: (itemId: string, signal: AbortSignal) => Promise<Pick<Result, "status">>;
}

export const createAppCalls = (appId: string): QuarantineCalls => ({
  list: (query, signal) => api.list("/apps/{appId}/quarantine", { path: { appId }, query, signal }),
  redrive: (body, signal) => api.post("/apps/{appId}/quarantine/redrive", { path: { appId }, body, signal }),
  redriveOne: (itemId, signal) =>
    api.post("/apps/{appId}/quarantine/{itemId}/redrive", { path: { appId, itemId }, body: {}, signal }),
});

interface Options {
  readonly signal: AbortSignal;
  readonly onProgress: (counts: Counts) => void;
}

const PAGE = 200;

/**
 * Processes quarantined items again, in order of arrival. Stops if Redis does not respond, and leaves the remaining items in quarantine.
 * @throws ApiError
 */
export async function runAgain(
  calls: QuarantineCalls,
  target: Target,
  { signal, onProgress }: Options,
): Promise<Counts> {
  let counts = NO_COUNTS;
  const add = (results: readonly Pick<Result, "status">[]): void => {
    for (const { status } of results) counts = { ...counts, [status]: counts[status] + 1 };
    onProgress(counts);
  };
  if (target.is === "items") {
    for (const itemId of target.ids) {
      if (signal.aborted) break;
      add([await runOne(calls, itemId, signal)]);
      if (counts.unavailable > 0) break;
    }
    return counts;
  }
  const { scope } = target;
  const seen = new Set<string>();
  let { from } = scope;
  while (!signal.aborted) {
    const here = { ...scope, ...(from !== undefined && { from }) };
    const { rows } = await withRateLimitRetry(signal, () => calls.list({ ...here, limit: PAGE }, signal));
    const last = rows.at(-1);
    if (last === undefined) break;
    if (rows.some(({ id }) => !seen.has(id))) {
      const results = await withRateLimitRetry(signal, () =>
        calls.redrive({ ...here, limit: rows.length }, signal),
      );
      add(results.filter(({ id }) => !seen.has(id)));
      for (const { id } of results) seen.add(id);
      if (counts.unavailable > 0) break;
      for (const { id } of rows) seen.add(id);
      from = last.firstAt;
    } else {
      // All items of this page stayed in quarantine, so continue after the last of them.
      from = new Date(Date.parse(last.firstAt) + 1).toISOString();
    }
    if (rows.length < PAGE) break;
  }
  return counts;
}

/** Processes one item again. A 404 means that the item was already released, and a 409 that it cannot be processed again. */
async function runOne(
  { redriveOne }: QuarantineCalls,
  itemId: string,
  signal: AbortSignal,
): Promise<Pick<Result, "status">> {
  try {
    return await withRateLimitRetry(signal, () => redriveOne(itemId, signal));
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return { status: "released" };
    if (error instanceof ApiError && error.status === 409) return { status: "refused" };
    if (error instanceof ApiError && error.status === 503) return { status: "unavailable" };
    throw error;
  }
}

const WAIT_MS = 5_000;

/** Sends a request, and retries it after a pause if the API's rate limit per minute is reached. */
async function withRateLimitRetry<T>(signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 429)) throw error;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, WAIT_MS);
        signal.addEventListener("abort", () => {
          clearTimeout(timer);
          resolve();
        });
      });
      signal.throwIfAborted();
    }
  }
}
