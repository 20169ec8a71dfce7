import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterEach, describe, expect, it, vi } from "vitest";
import { startLocalRedis } from "../../../src/bus/connection/local-redis.ts";
import { processIncarnation } from "../../../src/lib/servers/process-info.ts";
import { createLog } from "../../../src/log.ts";
import { itDeep } from "../../support/deep-run.ts";
import { startOwnServer } from "../../support/embedded-server-process.ts";
import { until } from "../../support/until.ts";

const log = createLog({ level: "silent" });
const signal = new AbortController().signal;

const made: string[] = [];
afterEach(() => {
  vi.unstubAllEnvs();
  for (const dir of made.splice(0)) rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
});

function folder(name = "data"): string {
  const parent = realpathSync(mkdtempSync(join(tmpdir(), "inlet-own-redis-")));
  made.push(parent);
  const dir = join(parent, name);
  mkdirSync(dir, { mode: 0o700 });
  return dir;
}

async function withClient<T>(socketPath: string, run: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis({ path: socketPath, retryStrategy: () => null });
  redis.on("error", () => {});
  try {
    return await run(redis);
  } finally {
    redis.disconnect();
  }
}

const isGone = async (pid: number) => (await processIncarnation(pid)) === undefined;

describe("the embedded Redis", () => {
  it("runs with appendfsync always, without key eviction, without a TCP port, and with at most half of the machine's memory", async () => {
    await using redis = await startLocalRedis({ dataDir: folder(), log, signal });
    const settings = await withClient(redis.socketPath, (client) => client.config("GET", "*"));
    const pairs = settings as string[];
    const setting = (name: string) => pairs[pairs.indexOf(name) + 1];
    expect(setting("port")).toBe("0");
    expect(setting("appendonly")).toBe("yes");
    expect(setting("appendfsync")).toBe("always");
    expect(setting("maxmemory-policy")).toBe("noeviction");
    expect(setting("hash-max-listpack-entries")).toBe("128");
    expect(Number(setting("maxmemory"))).toBeGreaterThan(0);
    expect(Number(setting("maxmemory"))).toBeLessThanOrEqual(totalmem() / 2);
  });

  itDeep(
    "keeps running when the gateway is killed, and is reused by the next gateway without losing data",
    async () => {
      const dataDir = folder();
      const start = () => startOwnServer({ dataDir, which: "redis" });
      const first = await start();
      const { pid, socketPath } = first.report;
      await withClient(socketPath, (client) => client.xadd("topic", "*", "n", "1"));
      await first.killGroup();

      const second = await start();
      expect(second.report).toMatchObject({ adopted: true, pid });
      await withClient(socketPath, (client) => client.xadd("topic", "*", "n", "2"));
      await second.killGroup();
      process.kill(pid, "SIGKILL");
      await until(() => isGone(pid));

      const third = await start();
      expect(third.report.adopted).toBe(false);
      const entries = await withClient(socketPath, (client) => client.xrange("topic", "-", "+"));
      expect(entries.map(([, fields]) => fields)).toEqual([
        ["n", "1"],
        ["n", "2"],
      ]);
      await third.stop();
      expect(await isGone(third.report.pid)).toBe(true);
      expect(existsSync(socketPath)).toBe(false);
    },
  );

  it("restarts automatically after a kill -9, and is reported as not ready until then", async () => {
    await using redis = await startLocalRedis({ dataDir: folder(), log, signal });
    const before = redis.status;
    if (before.state !== "ready") throw new Error(before.state);
    await withClient(redis.socketPath, (client) => client.set("kept", "1"));
    process.kill(before.pid, "SIGKILL");
    await until(() => redis.status.state !== "ready");
    await until(() => redis.status.state === "ready");
    expect(await withClient(redis.socketPath, (client) => client.get("kept"))).toBe("1");
  });

  itDeep(
    "stops an earlier Redis process whose socket file is gone before it starts a new one on the same data",
    async () => {
      const dataDir = folder();
      const first = await startOwnServer({ dataDir, which: "redis" });
      const { pid, socketPath } = first.report;
      await withClient(socketPath, (client) => client.set("kept", "1"));
      await first.killGroup();
      rmSync(socketPath);
      // Also limits how long the new server may take to reply.
      await using redis = await startLocalRedis({ dataDir, log, signal, maxSilenceMs: 5_000 });
      expect(await isGone(pid)).toBe(true);
      expect(await withClient(redis.socketPath, (client) => client.get("kept"))).toBe("1");
    },
  );

  it("works in a folder whose path is too long for a Unix socket and contains quotes and spaces", async () => {
    await using redis = await startLocalRedis({
      dataDir: folder(`it's "long" ${"x".repeat(100)}`),
      log,
      signal,
    });
    made.push(join(redis.socketPath, ".."));
    expect(redis.socketPath).toMatch(/^\/tmp\/inlet-\d+-[0-9a-f]{16}\/redis\.sock$/);
    expect(await withClient(redis.socketPath, (client) => client.ping())).toBe("PONG");
  });

  it("fails to start if no redis-server is installed, with an error that names the install command and REDIS_URL", async () => {
    vi.stubEnv("PATH", "/nonexistent");
    await expect(startLocalRedis({ dataDir: folder(), log, signal })).rejects.toThrow(
      /not on the PATH.*(install|setup\.sh).*REDIS_URL/,
    );
  });
});
