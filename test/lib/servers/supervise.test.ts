import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { processIncarnation } from "../../../src/lib/servers/process-info.ts";
import { spawnServer } from "../../../src/lib/servers/server-process.ts";
import {
  type ServerSpec,
  type SuperviseOptions,
  superviseServer,
} from "../../../src/lib/servers/supervise.ts";
import { sleep } from "../../../src/lib/sleep.ts";
import { createLog } from "../../../src/log.ts";
import { until } from "../../support/until.ts";

const log = createLog({ level: "silent" });
// Timings are short if the test waits for them. Otherwise they are too long to be reached on a slow machine.
const NEVER_MS = 3_600_000;
const timing = { probeMs: 5, adoptedPollMs: 10, minBackoffMs: 20, maxBackoffMs: 80, settledMs: NEVER_MS };
const options: SuperviseOptions = { log, signal: new AbortController().signal, timing };

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "inlet-supervise-"));
});
afterEach(() => rmSync(dir, { recursive: true }));

/** A shell script as the server. It is ready when the file `ready` contains its process id. */
function server(script: string, changes: Partial<ServerSpec> = {}): ServerSpec {
  return {
    name: "script",
    command: { file: "/bin/sh", args: ["-c", script], cwd: dir, env: { PATH: process.env.PATH ?? "" } },
    logFile: join(dir, "log"),
    findOrphan: async () => undefined,
    probe: async (pid) => (readReady() === pid ? "ready" : "silent"),
    stopSignals: ["SIGTERM"],
    stopGraceMs: NEVER_MS,
    maxSilenceMs: NEVER_MS,
    ...changes,
  };
}

function readReady(): number | undefined {
  const file = join(dir, "ready");
  return existsSync(file) ? Number(readFileSync(file, "utf8")) : undefined;
}

const SERVE = "echo $$ > ready; while :; do sleep 0.05; done";
const isGone = async (pid: number) => (await processIncarnation(pid)) === undefined;

function readyPid(supervised: {
  readonly status: { readonly state: string; readonly pid?: number };
}): number {
  const { state, pid } = supervised.status;
  if (pid === undefined) throw new Error(state);
  return pid;
}

describe("superviseServer", () => {
  it("starts a server in its own process group, and stops the server with the configured signal", async () => {
    const supervised = await superviseServer(server(`trap "touch ended; exit" TERM; ${SERVE}`), options);
    const pid = readyPid(supervised);
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1").split(") ")[1]?.split(" ");
    expect(stat?.[2]).toBe(String(pid));
    await supervised[Symbol.asyncDispose]();
    await supervised[Symbol.asyncDispose]();
    expect(supervised.status).toEqual({ state: "stopped" });
    expect(existsSync(join(dir, "ended"))).toBe(true);
    expect(await isGone(pid)).toBe(true);
  });

  it("kills the server's process group if the stop signal has no effect within the grace period", async () => {
    const supervised = await superviseServer(
      server(`trap "" TERM; sleep 100 & echo $! > child; ${SERVE}`, { stopGraceMs: 20 }),
      options,
    );
    const pids = [readyPid(supervised), Number(readFileSync(join(dir, "child"), "utf8"))];
    await supervised[Symbol.asyncDispose]();
    for (const pid of pids) await until(() => isGone(pid));
  });

  it("restarts a server each time it is killed, and does not report it as ready during the restart", async () => {
    // Recorded by the wait before each restart, because a restart can be over before a test would notice it.
    const states: string[] = [];
    const wait = async (ms: number, signal: AbortSignal): Promise<void> => {
      states.push(supervised.status.state);
      await sleep(ms, signal);
    };
    await using supervised = await superviseServer(server(SERVE), { ...options, wait });
    for (let round = 1; round <= 3; round++) {
      const pid = readyPid(supervised);
      process.kill(pid, "SIGKILL");
      await until(() => states.length === round && supervised.status.state === "ready");
      expect(readyPid(supervised)).not.toBe(pid);
    }
    expect(states).toEqual(["restarting", "restarting", "restarting"]);
  });

  /** Kills a server that cannot start a second time. Returns the first waits between its restarts. */
  async function recordWaits(count: number, changes: Partial<typeof timing> = {}): Promise<number[]> {
    const waits: number[] = [];
    const wait = async (ms: number, signal: AbortSignal): Promise<void> => {
      waits.push(ms);
      if (waits.length >= count && !signal.aborted) await once(signal, "abort");
    };
    const starts = "echo x >> starts; [ $(wc -l < starts) -gt 1 ] && exit 7";
    await using supervised = await superviseServer(server(`${starts}; ${SERVE}`), {
      ...options,
      timing: { ...timing, ...changes },
      random: () => 0,
      wait,
    });
    process.kill(readyPid(supervised), "SIGKILL");
    await until(() => waits.length >= count);
    expect(supervised.status).toMatchObject({ state: "restarting" });
    return waits;
  }

  it("restarts a server without limit once it was ready, and doubles the wait up to the maximum", async () => {
    expect(await recordWaits(6)).toEqual([20, 40, 80, 80, 80, 80]);
  });

  it("resets the wait between restarts to the minimum after the server has run long enough", async () => {
    expect(await recordWaits(3, { settledMs: -1 })).toEqual([20, 20, 20]);
  });

  it("rejects with the server's output if the first three starts fail", async () => {
    const failing = superviseServer(server("echo x >> starts; echo no such luck; exit 3"), options);
    await expect(failing).rejects.toThrow(/script cannot be started: exit code 3.*no such luck/s);
    expect(readFileSync(join(dir, "starts"), "utf8")).toBe("x\nx\nx\n");
  });

  it("rejects if the server's program does not exist", async () => {
    const spec = server("");
    const failing = superviseServer({ ...spec, command: { ...spec.command, file: "/nonexistent" } }, options);
    await expect(failing).rejects.toThrow("ENOENT");
  });

  it("waits without a time limit while a starting server reports that it is busy", async () => {
    let probes = 0;
    const busy = server(SERVE, { maxSilenceMs: 0, probe: async () => (++probes < 40 ? "busy" : "ready") });
    await using supervised = await superviseServer(busy, options);
    expect(probes).toBe(40);
    expect(supervised.status).toMatchObject({ state: "ready" });
  });

  it("restarts a server that does not respond", async () => {
    const started = new Set<number>();
    const probe = async (pid: number) => {
      // The server counts as busy until it has written its process id. After that, it no longer responds.
      if (!readFileSync(join(dir, "log"), "utf8").includes(`${pid}\n`)) return "busy";
      started.add(pid);
      return "silent";
    };
    const silent = server("echo $$; exec sleep 100", { maxSilenceMs: 20, probe });
    await expect(superviseServer(silent, options)).rejects.toThrow("silent for 20 ms");
    expect(started.size).toBe(3);
    for (const pid of started) expect(await isGone(pid)).toBe(true);
  });

  it("stops the server's process if the start is aborted", async () => {
    const stopping = new AbortController();
    const starting = superviseServer(server("echo $$ > pid; sleep 100"), {
      ...options,
      signal: stopping.signal,
    });
    await until(() => existsSync(join(dir, "pid")) && readFileSync(join(dir, "pid"), "utf8") !== "");
    stopping.abort(new Error("enough"));
    await expect(starting).rejects.toThrow("enough");
    expect(await isGone(Number(readFileSync(join(dir, "pid"), "utf8")))).toBe(true);
  });

  it("adopts a server process left by an earlier run, and starts a new process when the adopted one ends", async () => {
    const orphan = spawnServer(server(SERVE).command, join(dir, "log"));
    await until(() => readReady() === orphan.pid);
    const findOrphan = async () =>
      orphan.pid !== undefined && !(await isGone(orphan.pid)) ? orphan.pid : undefined;
    await using supervised = await superviseServer(server(SERVE, { findOrphan }), options);
    expect(supervised.status).toEqual({ state: "ready", pid: orphan.pid, adopted: true });
    orphan.signal("SIGKILL", "group");
    await until(() => supervised.status.state === "ready" && readyPid(supervised) !== orphan.pid);
    expect(supervised.status).toMatchObject({ adopted: false });
  });

  it("rotates the server's output file if the file is large, and keeps one previous file", async () => {
    writeFileSync(join(dir, "log"), Buffer.alloc(5 * 1024 * 1024, "x"));
    await using _supervised = await superviseServer(server(`echo hello; ${SERVE}`), options);
    expect(readFileSync(join(dir, "log"), "utf8")).toBe("hello\n");
    expect(existsSync(join(dir, "log.1"))).toBe(true);
  });
});
