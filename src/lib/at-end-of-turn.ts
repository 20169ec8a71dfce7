export interface AtEndOfTurn<T> {
  (one: T): void;
  /** Returns true if no item is queued for the end of this event loop turn. */
  isEmpty(): boolean;
}

/**
 * Returns a queue that collects the items of one event loop turn. It processes them after Node has read all sockets.
 *
 * Batching saves a sixth of the CPU time. Alternating between reading and processing for each request would evict the code of
 * both from the CPU caches.
 *
 * @param work processes one item. It must not throw, because the remaining items would be lost
 */
export function atEndOfTurn<T>(work: (one: T) => void): AtEndOfTurn<T> {
  let gathered: T[] = [];

  function workOff(): void {
    const all = gathered;
    gathered = [];
    for (const one of all) work(one);
  }

  const take = (one: T): void => {
    if (gathered.length === 0) setImmediate(workOff);
    gathered.push(one);
  };
  return Object.assign(take, { isEmpty: () => gathered.length === 0 });
}
