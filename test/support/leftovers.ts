import type { ChildProcess } from "node:child_process";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { afterAll, vi } from "vitest";

/** As this file finds them. */
const clocks = { setTimeout, setInterval, Date, now: performance.now };

/** Files share a worker: one that leaves a clock faked would hold up those after it. */
function restoreClocks(): readonly string[] {
  const left = vi.isFakeTimers() ? ["a fake of timers"] : [];
  vi.useRealTimers();
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  const found = { setTimeout, setInterval, Date, now: performance.now };
  for (const [name, clock] of Object.entries(clocks))
    if (found[name as keyof typeof found] !== clock) left.push(`a fake of ${name}`);
  const { now, ...globals } = clocks;
  Object.assign(globalThis, globals);
  performance.now = now;
  return left;
}

const children = new Set<ChildProcess>();

function noteChild(message: unknown): void {
  const { process: child } = message as { readonly process: ChildProcess };
  children.add(child);
  child.once("exit", () => children.delete(child));
}

/** A child that outlives a test that failed holds this process's output, and the run would wait for it. */
function endChildren(): readonly string[] {
  const left = [...children].filter(({ pid, exitCode }) => pid !== undefined && exitCode === null);
  for (const child of left) {
    // Some lead a process group: theirs is ended with them.
    for (const pid of [-Number(child.pid), Number(child.pid)]) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // There is no such group, or it has just ended.
      }
    }
  }
  return left.map(({ spawnargs }) => `a process, ${spawnargs.join(" ")}`);
}

subscribe("child_process", noteChild);
process.once("exit", endChildren);

afterAll(() => {
  unsubscribe("child_process", noteChild);
  process.off("exit", endChildren);
  const left = [...restoreClocks(), ...endChildren()];
  if (left.length > 0) throw new Error(`this file leaves behind: ${left.join(", ")}`);
});
