import { vi } from "vitest";

/** The monotonic clock of this process, that a test can move ahead; it goes right again when disposed of. */
export interface MovedClock extends Disposable {
  readonly ahead: (ms: number) => void;
}

export function moveMonotonicClock(): MovedClock {
  const now = performance.now.bind(performance);
  let aheadMs = 0;
  const spy = vi.spyOn(performance, "now").mockImplementation(() => now() + aheadMs);
  return {
    ahead(ms) {
      aheadMs += ms;
    },
    [Symbol.dispose]: () => spy.mockRestore(),
  };
}
