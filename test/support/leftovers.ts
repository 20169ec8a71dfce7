import { afterAll, vi } from "vitest";

/** As the first file of this worker finds them. */
const clocks = { setTimeout, setInterval, now: performance.now, Date };

/** Files share a worker: one that leaves a clock faked would hold up those after it. */
afterAll(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  const now = { setTimeout, setInterval, now: performance.now, Date };
  const left = Object.entries(clocks).filter(([name, clock]) => now[name as keyof typeof now] !== clock);
  Object.assign(globalThis, {
    setTimeout: clocks.setTimeout,
    setInterval: clocks.setInterval,
    Date: clocks.Date,
  });
  performance.now = clocks.now;
  if (left.length > 0) throw new Error(`this file leaves a fake behind: ${left.map(([name]) => name)}`);
});
