import { useCallback, useState } from "preact/hooks";
import { type ApiProblem, isAbort, toProblem } from "./problem.ts";

export interface Action<Args extends readonly unknown[], T> {
  /** Resolves with `undefined` if the action failed (see `problem`) or was already running. */
  readonly run: (...args: Args) => Promise<T | undefined>;
  readonly isRunning: boolean;
  readonly problem: ApiProblem | undefined;
  readonly reset: () => void;
}

/** Wraps an action of the user. Prevents a second run while the first is in progress, and exposes its failure. */
export function useAction<Args extends readonly unknown[], T>(
  act: (...args: Args) => Promise<T>,
): Action<Args, T> {
  const [isRunning, setRunning] = useState(false);
  const [problem, setProblem] = useState<ApiProblem>();
  const run = async (...args: Args): Promise<T | undefined> => {
    if (isRunning) return undefined;
    setRunning(true);
    setProblem(undefined);
    try {
      return await act(...args);
    } catch (error) {
      if (!isAbort(error)) setProblem(toProblem(error));
      return undefined;
    } finally {
      setRunning(false);
    }
  };
  const reset = useCallback(() => setProblem(undefined), []);
  return { run, isRunning, problem, reset };
}
