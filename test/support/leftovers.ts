import type { ChildProcess } from "node:child_process";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
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
/** Of the gateways that were started: their servers live on when they are killed, and are nobody's children then. */
const dataDirs = new Set<string>();

function noteChild(message: unknown): void {
  const { process: child } = message as { readonly process: ChildProcess };
  children.add(child);
  child.once("exit", () => children.delete(child));
  child.once("spawn", () => {
    const dataDir = /(?:^|\0)INLET_DATA_DIR=([^\0]+)/.exec(readProc(`${child.pid}/environ`))?.[1];
    if (dataDir !== undefined) dataDirs.add(dataDir);
  });
}

/** Empty where there is no such process, or no /proc. */
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

/** With all that descends from them: a shell's programs, a gateway's servers. And whatever works in a gateway's directory. */
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

/** What outlives a test that failed holds this process's output, and the run would wait for it. */
function endChildren(): readonly string[] {
  const left = [...children].filter(({ pid, exitCode }) => pid !== undefined && exitCode === null);
  if (left.length === 0 && dataDirs.size === 0) return [];
  for (const pid of withDescendants(left.map(({ pid }) => Number(pid)))) {
    // Some lead a process group: theirs is ended with them.
    for (const target of [-pid, pid]) {
      try {
        process.kill(target, "SIGKILL");
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
