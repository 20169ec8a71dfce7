import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Outcome } from "../../src/event/outcome.ts";
import { type GatewayProcess, startGatewayProcess } from "../support/gateway-process.ts";
import { until } from "../support/until.ts";

const shell = async (line: string): Promise<string> => (await promisify(execFile)("sh", ["-c", line])).stdout;

let dir: string;
let dataDir: string;
beforeAll(async () => {
  // 0700, as `mktemp -d` and homes are.
  dir = await mkdtemp(join(tmpdir(), "inlet-first-"));
  // What means something to a URL or a shell may stand in a folder's name.
  dataDir = join(dir, "it's #1 of 100% data?");
});
afterAll(() => rm(dir, { recursive: true, force: true }));

const start = (env: Readonly<Record<string, string>> = {}): Promise<GatewayProcess> =>
  startGatewayProcess({ INLET_DATA_DIR: dataDir, ...env });

/** The line of the greeting that begins with that word, as a person would paste it. */
function pasted(gateway: GatewayProcess, word: string): string {
  const line = gateway
    .output()
    .split("\n")
    .find((each) => each.trim().startsWith(word));
  if (line === undefined) throw new Error(`no line begins with ${word}:\n${gateway.output()}`);
  return line.trim();
}

/** Processes that run on the data directory: its servers' command lines or working directories lie in it. */
async function processesOf(folder: string): Promise<readonly number[]> {
  const found: number[] = [];
  for (const name of (await readdir("/proc")).filter((each) => /^\d+$/.test(each))) {
    const cwd = await promisify(execFile)("readlink", [`/proc/${name}/cwd`]).catch(() => ({ stdout: "" }));
    const state = await readFile(`/proc/${name}/stat`, "utf8").catch(() => "");
    if (cwd.stdout.startsWith(folder) && !/\) Z /.test(state)) found.push(Number(name));
  }
  return found;
}

interface Server {
  readonly server: string;
  readonly pid: number;
  readonly adopted: boolean;
}

/** The gateway's own servers, as its log names them. */
const serversOf = (gateway: GatewayProcess): readonly Server[] =>
  gateway
    .output()
    .split("\n")
    .filter((line) => line.includes('"server ready"'))
    .map((line) => JSON.parse(line) as Server)
    .map(({ server, pid, adopted }) => ({ server, pid, adopted }))
    .sort((a, b) => a.server.localeCompare(b.server));

let curl: string;
let xrange: string;

describe("a gateway on its own servers", () => {
  it("prints, on the first start, a key once and two lines that work as pasted", async () => {
    await using gateway = await startGatewayProcess({ INLET_DATA_DIR: dataDir, INLET_API_KEY: "" });
    curl = pasted(gateway, "curl");
    xrange = pasted(gateway, "redis-cli");
    const outcome = JSON.parse(await shell(curl)) as Outcome;
    expect(outcome).toMatchObject({ received: 1, published: 1 });
    const entry = await shell(xrange);
    expect(entry).toContain(outcome.events[0]?.entryId);
    expect(entry).toContain('{"hello":"world"}');
    const key = /ik_[0-9a-z]+/.exec(gateway.output())?.[0];
    const apps = await fetch(`${gateway.origin}/v1/apps`, { headers: { authorization: `Bearer ${key}` } });
    expect(await apps.json()).toMatchObject([{ uid: "welcome" }]);
    gateway.kill("SIGTERM");
    expect(await gateway.exited).toBe(0);
    expect(await processesOf(dataDir)).toEqual([]);
  });

  it("finds everything again when it is started again, and shows no key twice", async () => {
    await using gateway = await start();
    expect(gateway.output()).not.toContain("ik_");
    expect(await shell(xrange)).toContain('{"hello":"world"}');
    const apps = await gateway.api<readonly { uid: string }[]>("GET", "/apps");
    expect(apps.map(({ uid }) => uid)).toEqual(["welcome"]);
  });

  it("takes its servers back after kill -9, and loses nothing when they are killed with it", async () => {
    const first = await start();
    const address = (gateway: GatewayProcess): string => curl.replace(/http:\/\/[^/]+/, gateway.origin);
    const before = JSON.parse(await shell(address(first))) as Outcome;
    first.kill("SIGKILL");
    await first.exited;
    await using second = await start();
    expect(serversOf(second)).toEqual(serversOf(first).map((server) => ({ ...server, adopted: true })));

    for (const pid of [second.pid, ...(await processesOf(dataDir))]) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // It ended with its parent.
      }
    }
    await second.exited;
    await until(async () => (await processesOf(dataDir)).length === 0);
    await using third = await start();
    expect(await shell(xrange)).toContain(before.events[0]?.entryId);
    expect(JSON.parse(await shell(address(third)))).toMatchObject({ published: 1 });
  });

  it("leaves a running one its data directory, and says who has it", async () => {
    await using owner = await start();
    const second = promisify(execFile)(process.execPath, [join(import.meta.dirname, "../../src/main.ts")], {
      env: { PATH: process.env.PATH ?? "", INLET_PORT: "0", INLET_DATA_DIR: dataDir },
    });
    await expect(second).rejects.toMatchObject({
      code: 3,
      stderr: expect.stringContaining(String(owner.pid)),
    });
  });

  it("says 503 and is not ready while its Redis is gone, and recovers by itself", async () => {
    await using gateway = await start();
    const line = curl.replace(/http:\/\/[^/]+/, gateway.origin);
    const redis = serversOf(gateway).find(({ server }) => server === "redis")?.pid ?? 0;
    process.kill(redis, "SIGSTOP");
    const startedAt = performance.now();
    const stuck = await shell(line.replace("-sS", "-sS -i"));
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    expect(stuck).toMatch(/^HTTP\/1.1 503/);
    expect(stuck.toLowerCase()).toContain("retry-after: ");
    expect((await fetch(`${gateway.origin}/readyz`)).status).toBe(503);
    process.kill(redis, "SIGKILL");
    await until(async () => (await fetch(`${gateway.origin}/readyz`)).ok);
    expect(JSON.parse(await shell(line))).toMatchObject({ published: 1 });
  });

  it("says to the person who starts it why it does not, whatever the log's level", async () => {
    await using owner = await start();
    const { port } = new URL(owner.origin);
    const second = promisify(execFile)(process.execPath, [join(import.meta.dirname, "../../src/main.ts")], {
      env: {
        PATH: process.env.PATH ?? "",
        INLET_PORT: port,
        INLET_DATA_DIR: join(dir, "second"),
        INLET_LOG_LEVEL: "silent",
      },
    });
    await expect(second).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^Inlet does not start: .*EADDRINUSE/m),
    });
    expect(await processesOf(join(dir, "second"))).toEqual([]);
  });

  it("refuses a database with another master key", async () => {
    await using gateway = await start();
    gateway.kill("SIGTERM");
    await gateway.exited;
    const wrong = start({ INLET_MASTER_KEY: "f".repeat(64) });
    await expect(wrong).rejects.toThrow(/ended with 1[\s\S]*master key/i);
  });
});
