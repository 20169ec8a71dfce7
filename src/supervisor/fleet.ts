import { setTimeout as delay } from "node:timers/promises";
import { type Backoff, backoffMs } from "../lib/backoff.ts";
import { endsWithin, sleep } from "../lib/sleep.ts";
import type { Log } from "../log.ts";
import type { GatewayProcess } from "./gateway-process.ts";
import type { ToProcess } from "./messages.ts";

const BACKOFF: Backoff = { initialMs: 100, maxMs: 5_000, factor: 2, jitter: 0.5 };
/** Run time in ms after which the next restart waits only for the shortest backoff. */
const SETTLED_MS = 10_000;
/** Maximum time in ms until a replacement is ready. */
const READY_MS = 60_000;
const HEALTH_POLL_MS = 100;
/** Time in ms for which the end of a process counts as recent. */
const RECENT_MS = 600_000;
/** Maximum time in ms for which a process may drain: 10 s for idle connections, 20 s for requests in flight, and a reserve. */
const DRAIN_MS = 45_000;

export interface FleetOptions {
  /** Starts a process with this number. */
  readonly launch: (number: number) => GatewayProcess;
  /** Called when no more connections should go to this process. */
  readonly onLeaving: (process: GatewayProcess) => void;
  readonly log: Log;
}

/** A fixed number of processes. Those that end are replaced with backoff. */
export interface Fleet {
  /** Starts process 1, and then the others at the same time. Returns false if process 1 has ended before it was ready. */
  readonly start: (count: number) => Promise<Started>;
  readonly running: () => readonly GatewayProcess[];
  /** Returns how many processes ended without being stopped in the last ten minutes. */
  readonly countRecentEnds: () => number;
  /** Replaces the processes one after another. A process keeps running until its replacement is ready. */
  readonly restart: () => AsyncGenerator<{ readonly process: number; readonly pid: number | undefined }>;
  /** Stops all processes. `closing` resolves when they may stop accepting requests. */
  readonly stop: (closing: () => Promise<void>) => Promise<void>;
}

type Started = { readonly ok: true } | { readonly ok: false; readonly ended: number | string };

interface Slot {
  readonly number: number;
  current: GatewayProcess;
}

export function createFleet({ launch, onLeaving, log }: FleetOptions): Fleet {
  const slots: Slot[] = [];
  const live = new Set<GatewayProcess>();
  const stopping = new AbortController();
  let restarting = false;
  let endedAtMs: number[] = [];

  function countRecentEnds(): number {
    const sinceMs = performance.now() - RECENT_MS;
    endedAtMs = endedAtMs.filter((ms) => ms > sinceMs);
    return endedAtMs.length;
  }

  function launchTracked(number: number): GatewayProcess {
    const started = launch(number);
    live.add(started);
    void started.exited.then(() => live.delete(started));
    return started;
  }

  async function keepRunning(slot: Slot): Promise<void> {
    let failures = 0;
    while (!stopping.signal.aborted) {
      const { current } = slot;
      const beganAtMs = performance.now();
      const reason = await current.exited;
      if (stopping.signal.aborted) return;
      if (slot.current !== current) continue;
      endedAtMs.push(performance.now());
      failures = performance.now() - beganAtMs > SETTLED_MS ? 1 : failures + 1;
      log.warn(
        { event: "process.ended", ended: slot.number, pid: current.pid, reason, attempt: failures },
        "gateway process ended and is being replaced",
      );
      await sleep(backoffMs(BACKOFF, failures, Math.random), stopping.signal);
      if (!stopping.signal.aborted && slot.current === current) slot.current = launchTracked(slot.number);
    }
  }

  function addSlot(number: number): Slot {
    const slot = { number, current: launchTracked(number) };
    slots.push(slot);
    return slot;
  }

  async function isHealthy(process: GatewayProcess): Promise<boolean> {
    const deadline = performance.now() + READY_MS;
    const isStarted = await Promise.race([
      process.started,
      delay(READY_MS, false, { ref: false, signal: stopping.signal }).catch(() => false),
    ]);
    while (isStarted && !stopping.signal.aborted && performance.now() < deadline) {
      const report = await process.report("health");
      if (report !== undefined && report.status !== "notReady") return true;
      await sleep(HEALTH_POLL_MS, stopping.signal);
    }
    return false;
  }

  async function retire(process: GatewayProcess, message: ToProcess): Promise<void> {
    process.send(message);
    // A process that is still starting has nothing to finish.
    if (process.isReady && (await endsWithin(DRAIN_MS, process.exited))) return;
    process.kill();
    await process.exited;
  }

  async function* replaceAll(): AsyncGenerator<{
    readonly process: number;
    readonly pid: number | undefined;
  }> {
    for (const slot of slots) {
      const next = launchTracked(slot.number);
      if (!(await isHealthy(next))) {
        next.kill();
        throw new Error(
          `the new process ${slot.number} did not become ready (see the log), so the old processes continue`,
        );
      }
      const old = slot.current;
      slot.current = next;
      onLeaving(old);
      await retire(old, { type: "drain", isReplaced: true });
      log.info(
        { event: "process.replaced", replaced: slot.number, pid: next.pid },
        "gateway process was replaced",
      );
      yield { process: slot.number, pid: next.pid };
    }
  }

  return {
    async start(count) {
      const first = addSlot(1);
      if (!(await first.current.started)) return { ok: false, ended: await first.current.exited };
      void keepRunning(first);
      const others = Array.from({ length: count - 1 }, (_, i) => addSlot(i + 2));
      for (const slot of others) void keepRunning(slot);
      await Promise.all(others.map(({ current }) => current.started));
      return { ok: true };
    },
    running: () => [...live],
    countRecentEnds,
    async *restart() {
      if (restarting) throw new Error("a restart is already in progress");
      if (stopping.signal.aborted) throw new Error("the gateway is stopping");
      restarting = true;
      try {
        yield* replaceAll();
      } finally {
        restarting = false;
      }
    },
    async stop(closing) {
      stopping.abort();
      const ending = [...live].map((process) => retire(process, { type: "drain", isReplaced: false }));
      await closing();
      for (const process of live) process.send({ type: "close" });
      await Promise.all(ending);
    },
  };
}
