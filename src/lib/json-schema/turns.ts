/** Runs one piece of work per turn of the event loop, in order of asking, so that many pieces never add up to a stall. */
export type TakeTurn = <T>(work: () => T) => Promise<T>;

export function createTurns(): TakeTurn {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const turn = last.then(nextTurn).then(work);
    last = turn.catch(() => undefined);
    return turn;
  };
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
