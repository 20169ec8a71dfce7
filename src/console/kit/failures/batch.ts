import type { ComponentChildren } from "preact";
import { ApiError } from "../../api/api-error.ts";
import { type Schemas, send, sendForList } from "../../api/client.ts";
import { formatQuery, type ShownCall } from "../../api/curl.ts";

export type Status = Schemas["RedriveResult"]["status"];
/** Result for one failure. `gone`: it had already been deleted or redriven. */
type Result = Status | "gone";
export type Counts = Readonly<Record<Result, number>>;
export const NO_COUNTS: Counts = { released: 0, kept: 0, refused: 0, unavailable: 0, gone: 0 };

/** Filters of an API list, sent as query parameters or as the body of a redrive. */
export type Scope = Readonly<Record<string, string>>;

export interface Target<Row> {
  /** Path of the API's collection that contains the rows. */
  readonly collection: string;
  /** Loaded rows of the target, newest first. */
  readonly rows: readonly Row[];
  readonly count: number;
  /** Filters that select exactly this target. `undefined` if it can only be selected by the ids of its rows. */
  readonly scope?: Scope | undefined;
}

export interface RunOptions {
  readonly signal: AbortSignal;
  readonly onProgress: (counts: Counts) => void;
}

/** Work on many failures, which the user confirms after a preview. */
export interface Batch {
  readonly title: string;
  /** Returns the label of the button, given the number of failures: `Redrive 3`. */
  readonly verb: (count: string) => string;
  readonly isDanger?: boolean;
  readonly count: number;
  readonly call: ShownCall;
  /** Loads the expected result. Its `count` replaces that of the batch. */
  readonly preview: (
    signal: AbortSignal,
  ) => Promise<{ readonly count?: number; readonly content: ComponentChildren }>;
  readonly run: (options: RunOptions) => Promise<Counts>;
  /** Words for the results: `sent to the handler`. Without `kept`, no failure can stay. */
  readonly words: { readonly released: string; readonly kept?: string };
}

export const pathOf = (collection: string, id: string): string => `${collection}/${encodeURIComponent(id)}`;

type Redrive = Pick<Batch, "call" | "run" | "count">;

/** Returns the request and the work of a redrive: by the target's filters with `redriveScope`, or each row on its own, oldest first. */
export function redriveOf(
  { collection, rows, count, scope }: Target<{ readonly id: string }>,
  redriveScope: (collection: string, scope: Scope, options: RunOptions) => Promise<Counts> = redriveMatching,
): Redrive {
  if (scope) {
    return {
      count,
      call: { method: "POST", path: `${collection}/redrive`, body: scope },
      run: (options) => redriveScope(collection, scope, options),
    };
  }
  const redriveOne = async (id: string, signal?: AbortSignal): Promise<Status> => {
    const answer = await send<{ readonly status?: Status }>("POST", `${pathOf(collection, id)}/redrive`, {
      body: {},
      signal,
    });
    return answer.status ?? "released";
  };
  return {
    count,
    call: { method: "POST", path: `${pathOf(collection, rows.at(-1)?.id ?? "")}/redrive`, body: {} },
    run: (options) => runOnEach(rows, redriveOne, options),
  };
}

/** Returns the work that deletes each row of the target. */
export function deletionOf({ collection, rows }: Target<{ readonly id: string }>): Redrive {
  const deleteOne = async (id: string, signal?: AbortSignal): Promise<Status> => {
    await send("DELETE", pathOf(collection, id), { signal }).catch(ignoreGone);
    return "released";
  };
  return {
    count: rows.length,
    call: { method: "DELETE", path: pathOf(collection, rows.at(-1)?.id ?? "") },
    run: (options) => runOnEach(rows, deleteOne, options),
  };
}

/** Ignores the error of a deletion if the row is already gone. */
function ignoreGone(error: unknown): void {
  if (!(error instanceof ApiError && error.status === 404)) throw error;
}

/** Processes each row on its own, the oldest first. Stops if Redis does not respond. */
async function runOnEach(
  rows: readonly { readonly id: string }[],
  act: (id: string, signal: AbortSignal) => Promise<Status>,
  { signal, onProgress }: RunOptions,
): Promise<Counts> {
  let counts = NO_COUNTS;
  for (const { id } of rows.toReversed()) {
    if (signal.aborted || counts.unavailable > 0) break;
    counts = addTo(counts, [await withRateLimitRetry(signal, () => act(id, signal)).catch(toResult)]);
    onProgress(counts);
  }
  return counts;
}

/** A 404 means that the row is already gone, and a 409 that it cannot be processed again. */
function toResult(error: unknown): Result {
  const status = error instanceof ApiError ? error.status : undefined;
  if (status === 404) return "gone";
  if (status === 409) return "refused";
  if (status === 503) return "unavailable";
  throw error;
}

const PAGE = 200;

/**
 * Redrives all items of a quarantine that match the filters, in order of arrival. Stops if Redis does not respond, and leaves the remaining items
 * in quarantine.
 * @throws ApiError
 */
async function redriveMatching(
  collection: string,
  scope: Scope,
  { signal, onProgress }: RunOptions,
): Promise<Counts> {
  let counts = NO_COUNTS;
  const seen = new Set<string>();
  let { from } = scope;
  while (!signal.aborted) {
    const here = { ...scope, ...(from !== undefined && { from }) };
    const { rows } = await withRateLimitRetry(signal, () =>
      sendForList<{ readonly id: string; readonly firstAt: string }>(
        collection + formatQuery({ ...here, limit: PAGE }),
        { signal },
      ),
    );
    const last = rows.at(-1);
    if (last === undefined) break;
    if (rows.some(({ id }) => !seen.has(id))) {
      const results = await withRateLimitRetry(signal, () =>
        send<readonly { readonly id: string; readonly status: Status }[]>("POST", `${collection}/redrive`, {
          body: { ...here, limit: rows.length },
          signal,
        }),
      );
      counts = addTo(
        counts,
        results.filter(({ id }) => !seen.has(id)).map(({ status }) => status),
      );
      onProgress(counts);
      if (counts.unavailable > 0) break;
      for (const { id } of [...results, ...rows]) seen.add(id);
      from = last.firstAt;
    } else {
      // All items of this page stayed in quarantine, so continue after the last of them.
      from = new Date(Date.parse(last.firstAt) + 1).toISOString();
    }
    if (rows.length < PAGE) break;
  }
  return counts;
}

function addTo(counts: Counts, results: readonly Result[]): Counts {
  const sum = { ...counts };
  for (const result of results) sum[result]++;
  return sum;
}

const WAIT_MS = 5_000;

/** Sends a request, and retries it after a pause if the API's rate limit per minute is reached. */
export async function withRateLimitRetry<T>(signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
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
