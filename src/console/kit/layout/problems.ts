import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { api, gotList, type Schemas } from "../../api/client.ts";
import { type ApiProblem, toProblem } from "../../api/problem.ts";
import { may } from "../../session/session.ts";

export type Problem = Schemas["Problem"];

interface Known {
  /** Those that are open or acknowledged: the gravest first, then the oldest. */
  readonly rows: readonly Problem[];
  readonly total: number;
}

/** What is wrong in the organization; undefined: not known yet, or not for this caller. */
export const problems = signal<Known | undefined>(undefined);
export const problemsFailure = signal<ApiProblem | undefined>(undefined);

const EVERY_MS = 20_000;
const MAX = 100;

export async function loadProblems(signal?: AbortSignal): Promise<void> {
  const init = signal ? { signal } : {};
  try {
    const [opened, acknowledged] = await Promise.all(
      (["opened", "acknowledged"] as const).map((state) =>
        gotList(api.GET("/problems", { params: { query: { state, limit: MAX } }, ...init })),
      ),
    );
    if (signal?.aborted) return;
    problems.value = {
      rows: [...byWeight(opened?.rows ?? []), ...byWeight(acknowledged?.rows ?? [])],
      total: opened?.total ?? 0,
    };
    problemsFailure.value = undefined;
  } catch (error) {
    if (!signal?.aborted) problemsFailure.value = toProblem(error);
  }
}

const byWeight = (rows: readonly Problem[]): readonly Problem[] =>
  rows.toSorted(
    (a, b) =>
      Number(b.severity === "error") - Number(a.severity === "error") ||
      a.firstSeenAt.localeCompare(b.firstSeenAt),
  );

/** Keeps them up to date while somebody looks. */
export function useProblems(): void {
  useEffect(() => {
    problems.value = undefined;
    if (!may("problems.read")) return undefined;
    const aborting = new AbortController();
    const look = (): void => {
      if (!document.hidden) void loadProblems(aborting.signal);
    };
    look();
    const timer = setInterval(look, EVERY_MS);
    return () => {
      clearInterval(timer);
      aborting.abort();
    };
  }, []);
}
