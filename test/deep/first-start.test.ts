import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, readlink, rm } from "node:fs/promises";
import { getPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { sql } from "kysely";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WrongMasterKeyError } from "../../src/data/keyring/keyring.ts";
import type { Outcome } from "../../src/event/outcome.ts";
import { freePort } from "../support/free-port.ts";
import { startTestGateway } from "../support/gateway.ts";
import { type GatewayProcess, PROGRAM_ENV, startGatewayProcess } from "../support/gateway-process.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { nicesOf } from "../support/thread-nices.ts";
import { until } from "../support/until.ts";

const MAIN = join(import.meta.dirname, "../../src/main.ts");

const shell = async (line: string): Promise<string> => (await promisify(execFile)("sh", ["-c", line])).stdout;

let dir: string;
let dataDir: string;
beforeAll(async () => {
  // mkdtemp gives the folder mode 0700, like `mktemp -d` and home directories.
  dir = await mkdtemp(join(tmpdir(), "inlet-first-"));
  // The name contains characters that are special in a URL or a shell.
  dataDir = join(dir, "it's #1 of 100% data?");
});
afterAll(async () => {
  await killed?.[Symbol.asyncDispose]();
  await rm(dir, { recursive: true, force: true });
});

const start = (): Promise<GatewayProcess> => startGatewayProcess({ INLET_DATA_DIR: dataDir });

/** Runs a gateway that fails to start. Rejects with its exit code and output. */
const startInVain = (env: Readonly<Record<string, string>>) =>
  promisify(execFile)(process.execPath, [MAIN], { env: { ...PROGRAM_ENV, INLET_PORT: "0", ...env } });

/** Returns the greeting line that begins with this word, as a person would paste it. */
function pasted(gateway: GatewayProcess, word: string): string {
  const line = gateway
    .output()
    .split("\n")
    .find((each) => each.trim().startsWith(word));
  if (line === undefined) throw new Error(`no line begins with ${word}:\n${gateway.output()}`);
  return line.trim();
}

/** Settings for an external PostgreSQL with an embedded Redis. */
function externalDatabase({ connection }: Pick<TestDatabase, "connection">) {
  const { host, user, database } = connection;
  return {
    DATABASE_URL: `postgresql://${user}@localhost/${database}?host=${encodeURIComponent(host)}`,
    INLET_MASTER_KEY: "f".repeat(64),
  };
}

const keyIn = (output: string): string | undefined => /ik_[0-9a-z]+/.exec(output)?.[0];

/** Finds the processes whose working directory is inside the folder, such as the embedded servers. */
async function processesOf(folder: string): Promise<readonly number[]> {
  const found: number[] = [];
  for (const name of (await readdir("/proc")).filter((each) => /^\d+$/.test(each))) {
    const cwd = await readlink(`/proc/${name}/cwd`).catch(() => "");
    const state = await readFile(`/proc/${name}/stat`, "utf8").catch(() => "");
    if (cwd.startsWith(folder) && !/\) Z /.test(state)) found.push(Number(name));
  }
  return found;
}

interface Server {
  readonly server: string;
  readonly pid: number;
  readonly adopted: boolean;
}

const serversIn = (lines: readonly object[]): readonly Server[] =>
  (lines as readonly (Server & { readonly msg: string })[])
    .filter(({ msg }) => msg === "server ready")
    .map(({ server, pid, adopted }) => ({ server, pid, adopted }))
    .sort((a, b) => a.server.localeCompare(b.server));

const serversOf = (gateway: GatewayProcess): readonly Server[] =>
  serversIn(
    gateway
      .output()
      .split("\n")
      .filter((line) => line.startsWith("{"))
      .map((line) => JSON.parse(line)),
  );

let curl: string;
let xrange: string;
/** The gateway of the second start, until a test kills it. */
let killed: GatewayProcess;
const curlTo = ({ origin }: { readonly origin: string }): string => curl.replace(/http:\/\/[^/]+/, origin);

// The tests share one data directory: each start finds the data of the starts before it.
describe("a gateway with embedded servers", () => {
  it("prints an API key only on the first start, with two commands that can be pasted into a shell", async () => {
    await using gateway = await startGatewayProcess({ INLET_DATA_DIR: dataDir, INLET_API_KEY: "" });
    curl = pasted(gateway, "curl");
    xrange = pasted(gateway, "redis-cli");
    const outcome = JSON.parse(await shell(curl)) as Outcome;
    expect(outcome).toMatchObject({ received: 1, published: 1 });
    const entry = await shell(xrange);
    expect(entry).toContain(outcome.events[0]?.entryId);
    expect(entry).toContain('{"hello":"world"}');
    const apps = await fetch(`${gateway.origin}/v1/apps`, {
      headers: { authorization: `Bearer ${keyIn(gateway.output())}` },
    });
    // The filter leaves out Inlet's system app, which may appear a little later.
    const own = ((await apps.json()) as { isSystem: boolean }[]).filter(({ isSystem }) => !isSystem);
    expect(own).toMatchObject([{ uid: "welcome" }]);
    const docs = /\S+\/docs$/m.exec(gateway.output())?.[0] ?? "";
    expect((await fetch(docs)).status).toBe(200);
    // The page responds whether or not the console was built.
    const page = await fetch(new URL("/", docs));
    expect(page.url).toBe(docs.replace(/docs$/, "console"));
    expect(gateway.output()).toContain(`Console: ${page.url}`);
    gateway.kill("SIGTERM");
    expect(await gateway.exited).toBe(0);
    expect(await processesOf(dataDir)).toEqual([]);
  });

  it("still has all data after a restart, and does not print an API key again", async () => {
    killed = await start();
    expect(keyIn(killed.output())).toBeUndefined();
    expect(await shell(xrange)).toContain('{"hello":"world"}');
    const apps = await killed.api<readonly { uid: string; isSystem: boolean }[]>("GET", "/apps");
    expect(apps.filter(({ isSystem }) => !isSystem).map(({ uid }) => uid)).toEqual(["welcome"]);
  });

  it("locks its data directory, so that a second gateway fails to start and names the process that holds the lock", async () => {
    const second = startTestGateway({ INLET_DATA_DIR: dataDir });
    await expect(second).rejects.toThrow(new RegExp(`process ${killed.pid};.*set INLET_DATA_DIR`));
  });

  it.runIf(process.platform === "linux")(
    "decompresses bodies in threads that have a lower priority than all other threads",
    async () => {
      const [own = 0] = await nicesOf("MainThread", killed.pid);
      // These threads have a nice value 5 above the process's. The maximum is 19, the lowest priority.
      expect(new Set(await nicesOf("libuv-worker", killed.pid))).toEqual(new Set([Math.min(19, own + 5)]));
      expect(new Set(await nicesOf("V8Worker", killed.pid))).toEqual(new Set([own]));
      expect(own).toBe(getPriority());
    },
  );

  it("fails to start if its port or folder is unusable, and names the cause and the setting to change", async () => {
    const { port } = new URL(killed.origin);
    const inVain = startTestGateway({ INLET_DATA_DIR: join(dir, "fourth"), INLET_PORT: port });
    await expect(inVain).rejects.toMatchObject({
      message: expect.stringMatching(/set INLET_PORT/),
      cause: { code: "EADDRINUSE" },
    });
    const noFolder = join(MAIN, "data");
    await expect(startTestGateway({ INLET_DATA_DIR: noFolder })).rejects.toThrow(
      /src\/main\.ts\/data cannot be used: .*INLET_DATA_DIR/,
    );
  });

  it("prints the first API key at the next start if the first start failed or was killed", async () => {
    await using database = await createTestDatabase();
    const { db } = database;
    const env = { ...externalDatabase(database), INLET_DATA_DIR: join(dir, "third"), INLET_API_KEY: "" };
    const inVain = startTestGateway({ ...env, INLET_PORT: new URL(killed.origin).port });
    await expect(inVain).rejects.toThrow("INLET_PORT");
    expect(await processesOf(env.INLET_DATA_DIR)).toEqual([]);
    expect(await db.selectFrom("cluster").selectAll().execute()).toEqual([]);

    // The trigger blocks the gateway after it has printed the key.
    await sql`
      CREATE FUNCTION hang() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(3600); RETURN OLD; END'`.execute(
      db,
    );
    await sql`CREATE TRIGGER hang BEFORE DELETE ON untold_first_start FOR EACH ROW EXECUTE FUNCTION hang()`.execute(
      db,
    );
    const hanging = await startGatewayProcess(env);
    const key = keyIn(hanging.output());
    hanging.kill("SIGKILL");
    await hanging.exited;
    await sql`
      SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid()`.execute(db);
    await sql`DROP FUNCTION hang CASCADE`.execute(db);

    await using gateway = await startTestGateway(env);
    expect(keyIn(gateway.greeting)).toBe(key);
    const apps = await fetch(`${gateway.origin}/v1/apps`, { headers: { authorization: `Bearer ${key}` } });
    expect(apps.status).toBe(200);
    await using second = await startTestGateway({ ...env, INLET_DATA_DIR: join(dir, "fourth") });
    expect(keyIn(second.greeting)).toBeUndefined();
  });

  it("waits for an unavailable PostgreSQL server, alive but not ready, and logs which server", async () => {
    await using database = await createTestDatabase();
    const { host, database: name } = database.connection;
    const allow = (connections: boolean) =>
      sql`ALTER DATABASE ${sql.id(name)} ALLOW_CONNECTIONS ${sql.raw(String(connections))}`.execute(other.db);
    await using other = await createTestDatabase({ empty: true });
    await allow(false);
    const port = String(await freePort());
    const env = { ...externalDatabase(database), INLET_DATA_DIR: join(dir, "fifth"), INLET_PORT: port };
    const starting = startTestGateway(env);
    const ready = () => fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined);
    await until(async () => (await (await ready())?.text())?.includes(host) ?? false);
    expect((await ready())?.status).toBe(503);
    expect((await fetch(`http://127.0.0.1:${port}/healthz`)).status).toBe(200);
    const call = await fetch(`http://127.0.0.1:${port}/v1/apps`);
    expect([call.status, ((await call.json()) as { code: string }).code]).toEqual([503, "unavailable"]);
    expect(call.headers.get("retry-after")).toBe("1");
    await allow(true);
    await using gateway = await starting;
    expect((await ready())?.status).toBe(200);
    expect(gateway.lines.filter(({ event }) => event === "database.awaited").length).toBeGreaterThan(0);
  });

  it("exits when PostgreSQL rejects the connection, and prints the reason at any log level", async () => {
    await using database = await createTestDatabase();
    const dataDir = join(dir, "sixth");
    const inVain = startInVain({
      ...externalDatabase({ connection: { ...database.connection, database: "missing" } }),
      INLET_DATA_DIR: dataDir,
      INLET_LOG_LEVEL: "silent",
    });
    await expect(inVain).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /^Inlet did not start: cannot connect to PostgreSQL at .*"missing" does not exist/m,
      ),
    });
    expect(await processesOf(dataDir)).toEqual([]);
  });

  it("continues with its running servers after kill -9, and loses no data when those servers are killed too", async () => {
    const before = JSON.parse(await shell(curlTo(killed))) as Outcome;
    killed.kill("SIGKILL");
    await killed.exited;
    await using second = await start();
    expect(serversOf(second)).toEqual(serversOf(killed).map((server) => ({ ...server, adopted: true })));

    for (const pid of [second.pid, ...(await processesOf(dataDir))]) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // The process has already ended with its parent.
      }
    }
    await second.exited;
    await until(async () => (await processesOf(dataDir)).length === 0);
    await using third = await startTestGateway({ INLET_DATA_DIR: dataDir });
    expect(await shell(xrange)).toContain(before.events[0]?.entryId);
    expect(JSON.parse(await shell(curlTo(third)))).toMatchObject({ published: 1 });
  });

  it("responds 503 and is not ready while its Redis is down, and recovers without a restart", async () => {
    await using gateway = await startTestGateway({ INLET_DATA_DIR: dataDir }, { timeoutMs: 1_000 });
    const redis = serversIn(gateway.lines).find(({ server }) => server === "redis");
    if (redis === undefined) throw new Error("the gateway has no embedded Redis");
    const isPublished = async () => JSON.parse(await shell(curlTo(gateway))).published === 1;
    // After this, Redis is the only dependency that the gateway can wait for.
    await until(isPublished);
    process.kill(redis.pid, "SIGSTOP");
    // Redis stays stopped until both responses have arrived, so neither response waits for it.
    const stuck = await shell(curlTo(gateway).replace("-sS", "-sS -i"));
    expect(stuck).toMatch(/^HTTP\/1.1 503/);
    expect(stuck.toLowerCase()).toContain("retry-after: ");
    expect((await fetch(`${gateway.origin}/readyz`)).status).toBe(503);
    process.kill(redis.pid, "SIGKILL");
    await until(async () => (await fetch(`${gateway.origin}/readyz`)).ok);
    // The first delivery may still hit the one-second timeout, so the test retries.
    await until(isPublished);
  });

  it("fails to start with a master key other than the one that encrypted the database", async () => {
    const wrong = startTestGateway({ INLET_DATA_DIR: dataDir, INLET_MASTER_KEY: "f".repeat(64) });
    await expect(wrong).rejects.toThrow(WrongMasterKeyError);
    expect(await processesOf(dataDir)).toEqual([]);
  });
});
