import { vi } from "vitest";

/** A clock of this process that a test can move ahead, or back; it goes right again when disposed of. */
export interface MovedClock extends Disposable {
  readonly ahead: (ms: number) => void;
}

/** The monotonic clock. */
export const moveMonotonicClock = (): MovedClock => moved(performance);

/** The clock on the wall. */
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
