import type { ChildProcess } from "node:child_process";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { afterAll, vi } from "vitest";

/** The real clocks. Tests can replace them later. */
const clocks = { setTimeout, setInterval, Date, now: performance.now };

/** Restores all clocks, because test files share a worker and a leftover fake clock would block later files. Returns the leftovers. */
function restoreClocks(): readonly string[] {
  const left = vi.isFakeTimers() ? ["fake timers"] : [];
  vi.useRealTimers();
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  const found = { setTimeout, setInterval, Date, now: performance.now };
  for (const [name, clock] of Object.entries(clocks))
    if (found[name as keyof typeof found] !== clock) left.push(`a fake ${name}`);
  const { now, ...globals } = clocks;
  Object.assign(globalThis, globals);
  performance.now = now;
  return left;
}

const children = new Set<ChildProcess>();
/** Data directories of started gateways. Embedded servers outlive a killed gateway and then have no known parent process. */
const dataDirs = new Set<string>();

function trackChild(message: unknown): void {
  const { process: child } = message as { readonly process: ChildProcess };
  children.add(child);
  child.once("exit", () => children.delete(child));
  child.once("spawn", () => {
    const dataDir = /(?:^|\0)INLET_DATA_DIR=([^\0]+)/.exec(readProc(`${child.pid}/environ`))?.[1];
    if (dataDir !== undefined) dataDirs.add(dataDir);
  });
}

/** Returns an empty string when the process or /proc does not exist. */
function readProc(file: string): string {
  try {
    return readFileSync(`/proc/${file}`, "latin1");
  } catch {
    return "";
  }
}

function workingDirectory(pid: number): string {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return "";
  }
}

/** Returns these processes, all their descendants, and all processes that work in a gateway's data directory. */
function withDescendants(found: readonly number[]): ReadonlySet<number> {
  const all = new Set(found);
  const pids = existsSync("/proc") ? readdirSync("/proc").map(Number).filter(Boolean) : [];
  for (const pid of pids) {
    const cwd = dataDirs.size === 0 ? "" : workingDirectory(pid);
    if ([...dataDirs].some((dir) => cwd.startsWith(`${dir}/`))) all.add(pid);
  }
  const parents = pids.map((pid) => [pid, Number(/\) . (\d+)/.exec(readProc(`${pid}/stat`))?.[1])] as const);
  for (let before = -1; before !== all.size; ) {
    before = all.size;
    for (const [pid, parent] of parents) if (all.has(parent)) all.add(pid);
  }
  return all;
}

/** Kills leftover processes: they hold this process's output open, and the run would wait for them. Returns their command lines. */
function endChildren(): readonly string[] {
  const left = [...children].filter(({ pid, exitCode }) => pid !== undefined && exitCode === null);
  if (left.length === 0 && dataDirs.size === 0) return [];
  for (const pid of withDescendants(left.map(({ pid }) => Number(pid)))) {
    // A process may lead a process group, which is killed too.
    for (const target of [-pid, pid]) {
      try {
        process.kill(target, "SIGKILL");
      } catch {
        // The group does not exist, or the process has just ended.
      }
    }
  }
  return left.map(({ spawnargs }) => `a process, ${spawnargs.join(" ")}`);
}

subscribe("child_process", trackChild);
process.once("exit", endChildren);

afterAll(() => {
  unsubscribe("child_process", trackChild);
  process.off("exit", endChildren);
  const left = [...restoreClocks(), ...endChildren()];
  if (left.length > 0) throw new Error(`this test file left behind: ${left.join(", ")}`);
});
