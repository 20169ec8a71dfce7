export interface BatchOptions {
  /** Keys of one call at most. */
  readonly maxKeys: number;
  /** Calls under way at most: what is asked for meanwhile is gathered for the next. */
  readonly maxCalls: number;
}

/**
 * Look-ups of single keys as calls for many: those of one turn of the event loop go together, and while enough calls are under way
 * all that come. A key is looked up after it was asked for, never answered by a call that began before.
 *
 * @param load answers the values of the keys that have one
 */
export function batched<K, V>(
  load: (keys: readonly K[]) => Promise<ReadonlyMap<K, V>>,
  { maxKeys, maxCalls }: BatchOptions,
): (key: K) => Promise<V | undefined> {
  type Asked = { readonly key: K } & PromiseWithResolvers<V | undefined>;
  const waiting: Asked[] = [];
  let underWay = 0;
  let isScheduled = false;

  function schedule(): void {
    if (isScheduled || waiting.length === 0 || underWay >= maxCalls) return;
    isScheduled = true;
    setImmediate(() => {
      isScheduled = false;
      void run(waiting.splice(0, maxKeys));
      schedule();
    });
  }

  async function run(asked: readonly Asked[]): Promise<void> {
    underWay++;
    try {
      const found = await load([...new Set(asked.map(({ key }) => key))]);
      for (const { key, resolve } of asked) resolve(found.get(key));
    } catch (error) {
      for (const { reject } of asked) reject(error);
    } finally {
      underWay--;
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
