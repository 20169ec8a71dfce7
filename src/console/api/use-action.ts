import { useState } from "preact/hooks";
import { type ApiError, isAbort, toApiError } from "./api-error.ts";

export interface Action<Args extends readonly unknown[], T> {
  /** Runs the action. Resolves with `undefined` if the action fails (see `error`) or is already running. */
  readonly run: (...args: Args) => Promise<T | undefined>;
  readonly isRunning: boolean;
  readonly error: ApiError | undefined;
}

/** Hook that runs an action of the user, such as a click. Ignores further calls while the action runs, and returns its error. */
export function useAction<Args extends readonly unknown[], T>(
  act: (...args: Args) => Promise<T>,
): Action<Args, T> {
  const [isRunning, setRunning] = useState(false);
  const [error, setError] = useState<ApiError>();
  const run = async (...args: Args): Promise<T | undefined> => {
    if (isRunning) return undefined;
    setRunning(true);
    setError(undefined);
    try {
      return await act(...args);
    } catch (error) {
      if (!isAbort(error)) setError(toApiError(error));
      return undefined;
    } finally {
      setRunning(false);
    }
  };
  return { run, isRunning, error };
}
