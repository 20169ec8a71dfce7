import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { type ApiError, toApiError } from "../../api/api-error.ts";
import { api, type Schemas } from "../../api/client.ts";
import { hasPermission } from "../../session/session.ts";

export type Problem = Schemas["Problem"];

interface Known {
  /** Open problems first, then acknowledged problems. Within both, errors come before warnings, and older problems before newer ones. */
  readonly rows: readonly Problem[];
  /** Whether `rows` contains all open and acknowledged problems. */
  readonly isComplete: boolean;
  /** Number of open problems, without muted ones. */
  readonly total: number;
  readonly muted: readonly Problem[];
}

/** The organization's problems. `undefined` until they are loaded, or if the caller lacks the permission to read them. */
export const problems = signal<Known | undefined>(undefined);
export const problemsFailure = signal<ApiError | undefined>(undefined);

const REFRESH_MS = 20_000;
const MAX = 100;

export async function loadProblems(signal?: AbortSignal): Promise<void> {
  try {
    const queries = [
      { state: "opened", muted: "false" },
      { state: "acknowledged", muted: "false" },
      { muted: "true" },
    ] as const;
    const [opened, acknowledged, muted] = await Promise.all(
      queries.map((query) => api.list("/problems", { query: { ...query, limit: MAX }, signal })),
    );
    if (signal?.aborted) return;
    problems.value = {
      rows: [...sortBySeverity(opened?.rows ?? []), ...sortBySeverity(acknowledged?.rows ?? [])],
      isComplete: [opened, acknowledged].every((list) => list && list.rows.length >= list.total),
      total: opened?.total ?? 0,
      muted: sortBySeverity(muted?.rows ?? []),
    };
    problemsFailure.value = undefined;
  } catch (error) {
    if (!signal?.aborted) problemsFailure.value = toApiError(error);
  }
}

const sortBySeverity = (rows: readonly Problem[]): readonly Problem[] =>
  rows.toSorted(
    (a, b) =>
      Number(b.severity === "error") - Number(a.severity === "error") ||
      a.firstSeenAt.localeCompare(b.firstSeenAt),
  );

/** Reloads the problems at a regular interval while the page is visible. */
export function useProblems(): void {
  useEffect(() => {
    problems.value = undefined;
    if (!hasPermission("problems.read")) return undefined;
    const aborting = new AbortController();
    const refresh = (): void => {
      if (!document.hidden) void loadProblems(aborting.signal);
    };
    refresh();
    const timer = setInterval(refresh, REFRESH_MS);
    return () => {
      clearInterval(timer);
      aborting.abort();
    };
  }, []);
}
