export interface BatchOptions {
  readonly maxKeys: number;
  /** Maximum number of concurrent calls of `load`. While all calls are in flight, new keys are collected for the next call. */
  readonly maxCalls: number;
}

/**
 * Combines lookups of single keys into calls of `load`. A call contains the keys of one event loop turn, and the keys that waited
 * because `maxCalls` calls were in flight. A lookup never uses the result of a call that started before the lookup.
 *
 * @param load returns a map without the keys that have no value
 */
export function batched<K, V>(
  load: (keys: readonly K[]) => Promise<ReadonlyMap<K, V>>,
  { maxKeys, maxCalls }: BatchOptions,
): (key: K) => Promise<V | undefined> {
  type Asked = { readonly key: K } & PromiseWithResolvers<V | undefined>;
  const waiting: Asked[] = [];
  let inFlight = 0;
  let isScheduled = false;

  function schedule(): void {
    if (isScheduled || waiting.length === 0 || inFlight >= maxCalls) return;
    isScheduled = true;
    setImmediate(() => {
      isScheduled = false;
      void run(waiting.splice(0, maxKeys));
      schedule();
    });
  }

  async function run(asked: readonly Asked[]): Promise<void> {
    inFlight++;
    try {
      const found = await load([...new Set(asked.map(({ key }) => key))]);
      for (const { key, resolve } of asked) resolve(found.get(key));
    } catch (error) {
      for (const { reject } of asked) reject(error);
    } finally {
      inFlight--;
      schedule();
    }
  }

  return (key) => {
    const asked = { key, ...Promise.withResolvers<V | undefined>() };
    waiting.push(asked);
    schedule();
    return asked.promise;
  };
}
