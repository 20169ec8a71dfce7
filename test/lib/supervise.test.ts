import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { processIncarnation } from "../../src/lib/process-info.ts";
import { spawnServer } from "../../src/lib/server-process.ts";
import { type ServerSpec, type SuperviseOptions, superviseServer } from "../../src/lib/supervise.ts";
import { createLog } from "../../src/log.ts";
import { until } from "../support/until.ts";

const log = createLog({ level: "silent" });
const timing = { probeMs: 5, adoptedPollMs: 10, minBackoffMs: 20, maxBackoffMs: 80, settledMs: 60_000 };
const options: SuperviseOptions = { log, signal: new AbortController().signal, timing };

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "inlet-supervise-"));
});
afterEach(() => rmSync(dir, { recursive: true }));

/** A shell script as the server; it is ready once the file `ready` holds its process id. */
function server(script: string, changes: Partial<ServerSpec> = {}): ServerSpec {
  return {
    name: "script",
    command: { file: "/bin/sh", args: ["-c", script], cwd: dir, env: { PATH: process.env.PATH ?? "" } },
    logFile: join(dir, "log"),
    findOrphan: async () => undefined,
    probe: async (pid) => (readReady() === pid ? "ready" : "silent"),
    stopSignals: ["SIGTERM"],
    stopGraceMs: 100,
    maxSilenceMs: 2_000,
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
  it("starts a server as the leader of a process group of its own, and ends it with its signal", async () => {
    const supervised = await superviseServer(server(SERVE), options);
    const pid = readyPid(supervised);
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1").split(") ")[1]?.split(" ");
    expect(stat?.[2]).toBe(String(pid));
    await supervised[Symbol.asyncDispose]();
    await supervised[Symbol.asyncDispose]();
    expect(supervised.status).toEqual({ state: "stopped" });
    expect(await isGone(pid)).toBe(true);
  });

  it("kills the whole group when the signal has no effect within the grace time", async () => {
    const supervised = await superviseServer(
      server(`trap "" TERM; sleep 100 & echo $! > child; ${SERVE}`),
      options,
    );
    const pids = [readyPid(supervised), Number(readFileSync(join(dir, "child"), "utf8"))];
    await supervised[Symbol.asyncDispose]();
    for (const pid of pids) await until(() => isGone(pid));
  });

  it("starts it again each time that it is killed, and is not ready meanwhile", async () => {
    await using supervised = await superviseServer(server(SERVE), options);
    for (let round = 1; round <= 3; round++) {
      const pid = readyPid(supervised);
      process.kill(pid, "SIGKILL");
      await until(() => supervised.status.state !== "ready");
      await until(() => supervised.status.state === "ready");
      expect(readyPid(supervised)).not.toBe(pid);
    }
  });

  it("goes on trying for ever, waiting longer each time up to a bound, when it has served once", async () => {
    const starts = "echo x >> starts; [ $(wc -l < starts) -gt 1 ] && exit 7";
    const waits: number[] = [];
    const random = () => {
      waits.push(performance.now());
      return 1;
    };
    await using supervised = await superviseServer(server(`${starts}; ${SERVE}`), { ...options, random });
    process.kill(readyPid(supervised), "SIGKILL");
    await until(() => waits.length >= 6);
    expect(supervised.status).toMatchObject({ state: "restarting" });
    const gaps = waits.slice(1).map((at, index) => at - (waits[index] ?? 0));
    for (const [index, bound] of [20, 40, 80, 80, 80].entries())
      expect(gaps[index]).toBeGreaterThanOrEqual(bound - 2);
    // Without the bound the sixth would wait 640 ms.
    expect(Math.min(...gaps.slice(-2))).toBeLessThan(400);
  });

  it("gives up a first start that fails three times, with what the server said", async () => {
    const failing = superviseServer(server("echo x >> starts; echo no such luck; exit 3"), options);
    await expect(failing).rejects.toThrow(/script does not start: exit code 3.*no such luck/s);
    expect(readFileSync(join(dir, "starts"), "utf8")).toBe("x\nx\nx\n");
  });

  it("gives up when the program is missing", async () => {
    const spec = server("");
    const failing = superviseServer({ ...spec, command: { ...spec.command, file: "/nonexistent" } }, options);
    await expect(failing).rejects.toThrow("ENOENT");
  });

  it("restarts a server that stays silent, but waits for one that is busy", async () => {
    let probes = 0;
    const busy = server(SERVE, { maxSilenceMs: 50, probe: async () => (++probes < 40 ? "busy" : "ready") });
    await using supervised = await superviseServer(busy, options);
    expect(supervised.status).toMatchObject({ state: "ready" });

    const silent = server("echo x >> starts; sleep 100", { maxSilenceMs: 50, probe: async () => "silent" });
    await expect(superviseServer(silent, options)).rejects.toThrow("silent for 50 ms");
    expect(readFileSync(join(dir, "starts"), "utf8")).toBe("x\nx\nx\n");
  });

  it("ends what it has started when the start is broken off", async () => {
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

  it("takes over a running process, notices its death and starts it anew", async () => {
    const left = spawnServer(server(SERVE).command, join(dir, "log"));
    await until(() => readReady() === left.pid);
    const orphan = async () => (left.pid !== undefined && !(await isGone(left.pid)) ? left.pid : undefined);
    await using supervised = await superviseServer(server(SERVE, { findOrphan: orphan }), options);
    expect(supervised.status).toEqual({ state: "ready", pid: left.pid, adopted: true });
    left.signal("SIGKILL", "group");
    await until(() => supervised.status.state === "ready" && readyPid(supervised) !== left.pid);
    expect(supervised.status).toMatchObject({ adopted: false });
  });

  it("keeps the server's output bounded, with one predecessor", async () => {
    writeFileSync(join(dir, "log"), Buffer.alloc(5 * 1024 * 1024, "x"));
    await using _supervised = await superviseServer(server(`echo hello; ${SERVE}`), options);
    expect(readFileSync(join(dir, "log"), "utf8")).toBe("hello\n");
    expect(existsSync(join(dir, "log.1"))).toBe(true);
  });
});
