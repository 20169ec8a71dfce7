import { useCallback, useState } from "preact/hooks";
import { type ApiError, isAbort, toApiError } from "./api-error.ts";

export interface Action<Args extends readonly unknown[], T> {
  /** Resolves with `undefined` if the action failed (see `error`) or was already running. */
  readonly run: (...args: Args) => Promise<T | undefined>;
  readonly isRunning: boolean;
  readonly error: ApiError | undefined;
  readonly reset: () => void;
}

/** Wraps an action of the user. Prevents a second run while the first is in progress, and exposes its failure. */
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
  const reset = useCallback(() => setError(undefined), []);
  return { run, isRunning, error, reset };
}
