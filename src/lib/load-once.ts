/**
 * Returns a function that calls `load` at the first call, and shares the result with later calls. If `load` fails, the next call tries
 * again. For example, a module cannot be loaded while too many files are open.
 */
export function loadOnce<T>(load: () => Promise<T>): () => Promise<T> {
  let loading: Promise<T> | undefined;
  return () => {
    loading ??= load().catch((error: unknown) => {
      loading = undefined;
      throw error;
    });
    return loading;
  };
}
