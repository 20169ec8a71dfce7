import { readFile } from "node:fs/promises";
import type { Log } from "../../log.ts";
import { type Backoff, backoffMs } from "../backoff.ts";
import { endsWithin, type Sleep, sleep } from "../sleep.ts";
import { untilAborted } from "../wait.ts";
import { adoptServer, type ServerCommand, type ServerProcess, spawnServer } from "./server-process.ts";

/** Status of an embedded server. `/readyz` succeeds only while all of them are `ready`. */
export type ServerStatus =
  | { readonly state: "starting" }
  | { readonly state: "ready"; readonly pid: number; readonly adopted: boolean }
  | { readonly state: "restarting"; readonly reason: string; readonly attempt: number }
  | { readonly state: "stopping" }
  | { readonly state: "stopped" };

/** A second disposal waits for the first one. */
export interface SupervisedServer extends AsyncDisposable {
  readonly status: ServerStatus;
}

export interface ServerSpec {
  readonly name: string;
  readonly command: ServerCommand;
  readonly logFile: string;
  /**
   * Finds a server that still runs on the same data after the process that started it died. Called before each start of the server.
   */
  findOrphan(): Promise<number | undefined>;
  /**
   * Checks the server. Returns `busy` if the server is alive but not serving yet, for example while it loads data. Never throws.
   */
  probe(pid: number): Promise<"ready" | "busy" | "silent">;
  /**
   * Signals that ask the server to stop, sent one after another every `stopGraceMs`. Finally, the whole process group gets SIGKILL.
   */
  readonly stopSignals: readonly NodeJS.Signals[];
  readonly stopGraceMs: number;
  /** Maximum time in ms for which a starting server may be `silent` before it is restarted. The state `busy` has no time limit. */
  readonly maxSilenceMs: number;
}

export interface SuperviseOptions {
  readonly log: Log;
  /** Aborts the start. To stop a server that is already running, dispose of it. */
  readonly signal: AbortSignal;
  readonly timing?: Partial<typeof TIMING>;
  readonly random?: () => number;
  /** Replaces the timer for the waits between restarts. Used in tests. */
  readonly wait?: Sleep;
}

const TIMING = {
  probeMs: 25,
  adoptedPollMs: 200,
  minBackoffMs: 100,
  maxBackoffMs: 5_000,
  /**
   * Run time in ms after which a server counts as stable. If it fails later, the next restart waits only for the shortest backoff.
   */
  settledMs: 10_000,
};

/** Number of consecutive failures after which the first start is given up, because further attempts would hardly succeed. */
const FIRST_START_ATTEMPTS = 3;
const LOG_TAIL_LINES = 12;

/**
 * Starts a server or takes over a running one, and restarts it with backoff whenever it ends. Resolves when the server is first ready.
 * Rejects after `FIRST_START_ATTEMPTS` failures, or when the signal aborts.
 */
export async function superviseServer(
  spec: ServerSpec,
  options: SuperviseOptions,
): Promise<SupervisedServer> {
  const timing = { ...TIMING, ...options.timing };
  const random = options.random ?? Math.random;
  const wait = options.wait ?? sleep;
  const log = options.log.child({ server: spec.name });
  const { minBackoffMs: initialMs, maxBackoffMs: maxMs } = timing;
  const backoff: Backoff = { initialMs, maxMs, factor: 2, jitter: 0.5 };
  const stopping = new AbortController();
  const started = Promise.withResolvers<void>();
  let status: ServerStatus = { state: "starting" };
  let served = false;

  async function runOnce(): Promise<string> {
    const orphan = await spec.findOrphan();
    const server =
      orphan === undefined
        ? spawnServer(spec.command, spec.logFile)
        : adoptServer(orphan, timing.adoptedPollMs);
    const gone = new AbortController();
    void server.exited.then(() => gone.abort());
    const ready = await untilReady(server, AbortSignal.any([stopping.signal, gone.signal]));
    if (ready && server.pid !== undefined) {
      status = { state: "ready", pid: server.pid, adopted: server.adopted };
      log.info({ event: "server.ready", pid: server.pid, adopted: server.adopted }, "server ready");
      served = true;
      started.resolve();
      await untilAborted(AbortSignal.any([stopping.signal, gone.signal]));
    }
    if (gone.signal.aborted || server.pid === undefined) return server.exited;
    await stopServer(server, spec);
    return `silent for ${spec.maxSilenceMs} ms`;
  }

  async function untilReady(server: ServerProcess, ended: AbortSignal): Promise<boolean> {
    let heardAtMs = performance.now();
    while (!ended.aborted && server.pid !== undefined) {
      const answer = await spec.probe(server.pid);
      if (answer === "ready") return !ended.aborted;
      if (answer === "busy") heardAtMs = performance.now();
      else if (performance.now() - heardAtMs > spec.maxSilenceMs) return false;
      await sleep(timing.probeMs, ended);
    }
    return false;
  }

  async function keepRunning(): Promise<void> {
    let failures = 0;
    while (!stopping.signal.aborted) {
      const beganAtMs = performance.now();
      const reason = await runOnce().catch((error: unknown) => String(error));
      if (stopping.signal.aborted) return;
      failures = performance.now() - beganAtMs > timing.settledMs ? 1 : failures + 1;
      status = { state: "restarting", reason, attempt: failures };
      const tail = await readLogTail(spec.logFile);
      log.warn({ event: "server.ended", reason, attempt: failures, output: tail }, "server ended");
      if (!served && failures >= FIRST_START_ATTEMPTS) {
        started.reject(new Error(`${spec.name} cannot be started: ${reason}\n${tail}`));
        return;
      }
      await wait(backoffMs(backoff, failures, random), stopping.signal);
    }
  }

  const running = keepRunning();
  async function stop(): Promise<void> {
    if (!stopping.signal.aborted) {
      status = { state: "stopping" };
      stopping.abort();
    }
    await running;
    status = { state: "stopped" };
  }

  const onAbort = () => started.reject(options.signal.reason);
  options.signal.addEventListener("abort", onAbort, { once: true });
  if (options.signal.aborted) onAbort();
  try {
    await started.promise;
  } catch (error) {
    await stop();
    throw error;
  } finally {
    options.signal.removeEventListener("abort", onAbort);
  }
  return {
    get status() {
      return status;
    },
    [Symbol.asyncDispose]: stop,
  };
}

async function stopServer(server: ServerProcess, spec: ServerSpec): Promise<void> {
  for (const signal of spec.stopSignals) {
    server.signal(signal, "process");
    if (await endsWithin(spec.stopGraceMs, server.exited)) return;
  }
  server.signal("SIGKILL", "group");
  await server.exited;
}

async function readLogTail(logFile: string): Promise<string> {
  const text = await readFile(logFile, "utf8").catch(() => "");
  return text.trimEnd().split("\n").slice(-LOG_TAIL_LINES).join("\n");
}
