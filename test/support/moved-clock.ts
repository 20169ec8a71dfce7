import { vi } from "vitest";

/** A clock of this process that a test can move forward or back. Disposal restores it. */
export interface MovedClock extends Disposable {
  readonly ahead: (ms: number) => void;
}

export const moveMonotonicClock = (): MovedClock => moved(performance);

export const moveWallClock = (): MovedClock => moved(Date);

function moved(clock: { now(): number }): MovedClock {
  const now = clock.now.bind(clock);
  let aheadMs = 0;
  const spy = vi.spyOn(clock, "now").mockImplementation(() => now() + aheadMs);
  return {
    ahead(ms) {
      aheadMs += ms;
    },
    [Symbol.dispose]: () => spy.mockRestore(),
  };
}
