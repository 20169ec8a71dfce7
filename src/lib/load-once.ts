/**
 * Returns a function that calls `load` at most once and shares the result. If `load` fails, the next call tries again, because a module
 * cannot be loaded while too many files are open.
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
