import { useCallback, useState } from "preact/hooks";
import { type ApiProblem, isAbort, toProblem } from "./problem.ts";

export interface Action<Args extends readonly unknown[], T> {
  /** Undefined: it failed, and `problem` says why; or it was under way already. */
  readonly run: (...args: Args) => Promise<T | undefined>;
  readonly isRunning: boolean;
  readonly problem: ApiProblem | undefined;
  readonly reset: () => void;
}

/** Something that a person does: once at a time, with its failure beside it. */
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
