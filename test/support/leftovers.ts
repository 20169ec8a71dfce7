import { afterAll, vi } from "vitest";

/** As this file finds them. */
const clocks = { setTimeout, setInterval, Date, now: performance.now };

/** Files share a worker: one that leaves a clock faked would hold up those after it. */
afterAll(() => {
  const left = vi.isFakeTimers() ? ["timers"] : [];
  vi.useRealTimers();
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  const found = { setTimeout, setInterval, Date, now: performance.now };
  for (const [name, clock] of Object.entries(clocks))
    if (found[name as keyof typeof found] !== clock) left.push(name);
  const { now, ...globals } = clocks;
  Object.assign(globalThis, globals);
  performance.now = now;
  if (left.length > 0) throw new Error(`this file leaves a fake behind: ${left}`);
});
