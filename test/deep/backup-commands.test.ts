import { type ChildProcess, spawn } from "node:child_process";
import {
  copyFileSync,
  createWriteStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { afterAll, describe, expect, it } from "vitest";
import { runProgram } from "../../src/cli/program.ts";
import { checkArchive, readArchive } from "../../src/lib/archive/read-archive.ts";
import { createArchive } from "../../src/lib/archive/write-archive.ts";
import { installApp } from "../support/channels.ts";
import { type CommandOptions, runInlet } from "../support/command.ts";
import { startTestGateway } from "../support/gateway.ts";
import { opened } from "../support/opened.ts";
import { until } from "../support/until.ts";

const PASSPHRASE = { INLET_BACKUP_PASSPHRASE: "a passphrase for tests" };
const dir = mkdtempSync(join(tmpdir(), "inlet-backup-"));
afterAll(() => rmSync(dir, { recursive: true, force: true, maxRetries: 5 }));
const at = (...names: readonly string[]): string => join(dir, ...names);

const run = (argv: readonly string[], options: CommandOptions = {}) =>
  runInlet(argv, { ...options, env: { INLET_DATA_DIR: at("data"), ...options.env } });
const reportOf = (stdout: string) => JSON.parse(stdout) as Record<string, unknown>;

const startOn = (dataDir: string) => startTestGateway({ INLET_DATA_DIR: dataDir });
type Started = Awaited<ReturnType<typeof startOn>>;

const idsOf = async ({ api }: Started, appId: string): Promise<readonly string[]> =>
  (await api<{ id: string }[]>("GET", `/apps/${appId}/events?limit=200`)).map(({ id }) => id);

/** Starts a gateway with embedded servers and a channel with events, then creates a backup while it runs. */
const world = opened(async () => {
  const gateway = await startOn(at("data"));
  const app = await installApp(gateway, [
    { uid: "inbox", kind: "webhook", config: {}, events: [{ type: "t", idPath: "$.id" }] },
  ]);
  const path = new URL(app.channels[0]?.url ?? "").pathname;
  const post = async (to: Started, id: string): Promise<string> => {
    const body = JSON.stringify({ id, big: "x".repeat(1_000) });
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${to.origin}${path}`, { method: "POST", headers, body });
    expect(answer.status).toBe(200);
    return ((await answer.json()) as { events: { status: string }[] }).events[0]?.status ?? "";
  };
  for (let n = 0; n < 20; n++) await post(gateway, `before-${n}`);
  const made = await run(["backup", at("whole.tar")], { env: PASSPHRASE });
  await post(gateway, "after");
  const ids = (await idsOf(gateway, app.id)).filter((id) => id !== "after");
  await gateway[Symbol.asyncDispose]();
  return { app, made, post, ids };
});

describe("inlet backup", () => {
  it("backs up a running gateway to one owner-readable file that contains the master key only in encrypted form", async () => {
    const { code, stdout, stderr } = world.made;
    expect([code, stderr]).toEqual([0, ""]);
    expect(reportOf(stdout)).toMatchObject({ file: at("whole.tar"), masterKey: "sealed", tables: 59 });
    expect(statSync(at("whole.tar")).mode & 0o777).toBe(0o600);
    const key = readFileSync(at("data", "master.key"), "utf8").trim();
    expect(readFileSync(at("whole.tar")).includes(key)).toBe(false);
  });

  it("backs up a stopped gateway, without the master key if --without-master-key is given", async () => {
    const { code, stdout, stderr } = await run(["backup", at("apart.tar"), "--without-master-key"]);
    expect([code, reportOf(stdout).masterKey]).toEqual([0, "apart"]);
    expect(stderr).toContain("The gateway is not running");
    const manifest = await checkArchive(at("apart.tar"), { signal: new AbortController().signal });
    expect(manifest.masterKey).toMatchObject({ sealed: null });
  });

  it("fails without a backup file while a restore into the same data directory is in progress", async () => {
    await using gateway = await startOn(at("data"));
    const mark = at("data", "restore.unfinished");
    writeFileSync(mark, "");
    try {
      const refused = await run(["backup", at("x.tar")], { env: PASSPHRASE });
      expect([refused.code, refused.stderr]).toEqual([3, expect.stringContaining("a restore into")]);
      expect(existsSync(at("x.tar"))).toBe(false);
    } finally {
      rmSync(mark);
    }
    expect((await fetch(`${gateway.origin}/readyz`)).status).toBe(200);
  });

  it.each([
    ["no passphrase", [at("x.tar")], {}, 2, "INLET_BACKUP_PASSPHRASE"],
    ["a short one", [at("x.tar")], { INLET_BACKUP_PASSPHRASE: "short" }, 2, "12 characters"],
    ["a file that is there", [at("whole.tar")], PASSPHRASE, 2, "a backup never replaces a file"],
    ["a folder that is not", [at("none", "x.tar")], PASSPHRASE, 1, "cannot be written (ENOENT)"],
    [
      "no gateway's data",
      [at("x.tar")],
      { ...PASSPHRASE, INLET_DATA_DIR: at("none") },
      1,
      "no gateway has been",
    ],
    [
      "a Redis of others that the settings do not name",
      [at("x.tar")],
      { ...PASSPHRASE, INLET_DATA_DIR: at("postgres-alone") },
      1,
      "has no Redis",
    ],
    [
      "servers of others",
      [at("x.tar")],
      { ...PASSPHRASE, REDIS_URL: "redis://localhost" },
      1,
      "REDIS_URL is set",
    ],
  ])("writes no backup file and prints the reason: %s", async (_, argv, env, code, reason) => {
    mkdirSync(at("postgres-alone", "postgres"), { recursive: true });
    const refused = await run(["backup", ...argv], { env });
    expect([refused.code, refused.stdout, refused.stderr]).toEqual([
      code,
      "",
      expect.stringContaining(reason),
    ]);
    expect(existsSync(at("x.tar"))).toBe(false);
  });
});

describe("inlet restore", () => {
  it("restores every event that was acknowledged before the backup, and the gateway still detects their duplicates", async () => {
    const restored = await run(["restore", at("whole.tar"), "--data-dir", at("restored")], {
      env: PASSPHRASE,
    });
    expect([restored.code, restored.stderr]).toEqual([0, ""]);
    const { masterKey, unrecoverable } = reportOf(restored.stdout);
    expect([masterKey, (unrecoverable as string[]).length]).toEqual(["file", 6]);
    expect(readFileSync(at("restored", "master.key"))).toEqual(readFileSync(at("data", "master.key")));
    await using gateway = await startOn(at("restored"));
    const { app, post } = world;
    expect(await idsOf(gateway, app.id)).toEqual(world.ids);
    expect(await post(gateway, "before-7")).toBe("duplicate");
    expect(await post(gateway, "after")).toBe("published");
  });

  const refusals: readonly (readonly [string, () => Promise<string> | string, object, number, string])[] = [
    [
      "a passphrase of another",
      () => at("whole.tar"),
      { INLET_BACKUP_PASSPHRASE: "another one of these" },
      2,
      "not the passphrase of the backup",
    ],
    [
      "a master key of another",
      () => at("apart.tar"),
      { INLET_MASTER_KEY: "0".repeat(64) },
      2,
      "not the master key of this backup",
    ],
    ["no passphrase", () => at("whole.tar"), {}, 2, "INLET_BACKUP_PASSPHRASE"],
    ["no such file", () => at("none.tar"), PASSPHRASE, 1, "ENOENT"],
    [
      "a part with another byte",
      () => changed((bytes) => bytes.fill(~(bytes[600] ?? 0), 600, 601)),
      PASSPHRASE,
      1,
      "the part redis.rdb was modified",
    ],
    [
      "a file that was cut off",
      () => changed((bytes) => bytes.subarray(0, bytes.length - 9_000)),
      PASSPHRASE,
      1,
      "is incomplete",
    ],
    ["an archive of something else", () => archiveOf({}), PASSPHRASE, 1, "not a backup of Inlet"],
    ["a newer format", () => archiveOf({ format: 2 }), PASSPHRASE, 1, "newer version of Inlet"],
    [
      "a newer migration",
      () =>
        withMigrations((all) => [...all, migration((all.at(-1)?.number ?? 0) + 1, "9999_of_tomorrow.sql")]),
      PASSPHRASE,
      1,
      "9999_of_tomorrow.sql",
    ],
    [
      "migrations older than the baseline",
      () => withMigrations(() => [migration(1, "0001_spine.sql"), migration(2, "0002_leases.sql")]),
      PASSPHRASE,
      1,
      "is at the migration 0002_leases.sql, which is too old for this version. Restore it with the last version",
    ],
  ];
  it.each(
    refusals,
  )("writes no file if the backup cannot be restored because of %s", async (_, file, env, code, reason) => {
    const refused = await run(["restore", await file(), "--data-dir", at("refused")], { env: { ...env } });
    expect([refused.code, refused.stdout, refused.stderr]).toEqual([
      code,
      "",
      expect.stringContaining(reason),
    ]);
    expect(existsSync(at("refused"))).toBe(false);
  });

  it("rejects a target folder that contains files, and leaves the files unchanged", async () => {
    mkdirSync(at("occupied"));
    writeFileSync(at("occupied", "letter.txt"), "mine");
    for (const [where, code] of [
      [at("occupied"), 1],
      [at("data"), 1],
    ] as const) {
      const before = readdirSync(where);
      const refused = await run(["restore", at("whole.tar"), "--data-dir", where], { env: PASSPHRASE });
      expect([refused.code, refused.stderr]).toEqual([code, expect.stringContaining("is not empty")]);
      expect(readdirSync(where)).toEqual(before);
    }
    const others = await run(["restore", at("whole.tar")], {
      env: { ...PASSPHRASE, REDIS_URL: "redis://localhost" },
    });
    expect([others.code, others.stderr]).toEqual([2, expect.stringContaining("would not use")]);
  });

  it("stops the Redis server that an interrupted restore left running, even while that server loads its data", async () => {
    const folder = realpathSync(mkdtempSync(join(dir, "left-")));
    const left = await startLoading(folder);
    try {
      const env = PASSPHRASE;
      const again = await run(["restore", at("whole.tar"), "--data-dir", folder], { env });
      expect([again.code, again.stderr]).toEqual([0, expect.stringContaining("Starting over")]);
      await until(() => left.exitCode !== null || left.signalCode !== null);
    } finally {
      left.kill("SIGKILL");
    }
  });

  it.each([
    ["was empty", []],
    ["contained an unfinished restore that another process completed", ["restore.unfinished"]],
  ])("fails without replacing files that appear while the user types the passphrase, if the folder %s", async (_, names) => {
    const folder = mkdtempSync(join(dir, "filled-"));
    for (const name of names) writeFileSync(join(folder, name), "");
    const { code, said } = await restoreSlowly(folder, () => {
      for (const name of names) rmSync(join(folder, name));
      writeFileSync(join(folder, "letter.txt"), "mine");
    });
    expect([code, said]).toEqual([1, expect.stringContaining("is not empty (letter.txt)")]);
    expect(readFileSync(join(folder, "letter.txt"), "utf8")).toBe("mine");
  });
});

/** Restores at a terminal, and runs `meanwhile` before the passphrase is typed. */
async function restoreSlowly(dataDir: string, meanwhile: () => void) {
  const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode() {} });
  let said = "";
  const { promise: asked, resolve } = Promise.withResolvers<void>();
  const out = {
    write(text: string) {
      said += text;
      if (said.includes("Passphrase of the backup")) resolve();
    },
  };
  const { signal } = new AbortController();
  const io = { stdin, stdout: out, stderr: out, env: {}, signal };
  const restoring = runProgram(["restore", at("whole.tar"), "--data-dir", dataDir], io);
  await asked;
  meanwhile();
  stdin.write(`${PASSPHRASE.INLET_BACKUP_PASSPHRASE}\r`);
  return { code: await restoring, said };
}

/** Starts a Redis server in the state that a killed restore leaves: orphaned, and still loading its file. */
async function startLoading(dataDir: string): Promise<ChildProcess> {
  for (const name of ["redis", "run"]) mkdirSync(join(dataDir, name), { mode: 0o700 });
  writeFileSync(join(dataDir, "restore.unfinished"), "");
  const { signal } = new AbortController();
  const file = join(dataDir, "redis", "restore.rdb");
  for await (const { content } of readArchive(at("whole.tar"), {
    signal,
    isWanted: (name) => name === "redis.rdb",
  }))
    await pipeline(content, createWriteStream(file));
  const pidFile = join(dataDir, "redis", "redis.pid");
  const lines = [
    ...["port 0", `unixsocket "${join(dataDir, "run", "redis.sock")}"`, `dir "${join(dataDir, "redis")}"`],
    ...[`pidfile "${pidFile}"`, 'save ""', "dbfilename restore.rdb", "key-load-delay 300000"],
  ];
  writeFileSync(join(dataDir, "redis.conf"), `${lines.join("\n")}\n`);
  const child = spawn("redis-server", [join(dataDir, "redis.conf")], { stdio: "ignore" });
  await until(() => existsSync(pidFile) && readFileSync(pidFile, "utf8").trim() === `${child.pid}`);
  return child;
}

function changed(change: (bytes: Buffer) => Buffer): string {
  copyFileSync(at("whole.tar"), at("changed.tar"));
  writeFileSync(at("changed.tar"), change(readFileSync(at("changed.tar"))));
  return at("changed.tar");
}

async function archiveOf(about: Readonly<Record<string, unknown>>): Promise<string> {
  rmSync(at("made.tar"), { force: true });
  await using archive = await createArchive(at("made.tar"), { signal: new AbortController().signal });
  await archive.add("redis.rdb", Readable.from([Buffer.from("x")]));
  await archive.finish(about);
  return at("made.tar");
}

type Migrations = readonly { readonly number: number; readonly name: string }[];

/** Creates a backup whose manifest lists other migrations. */
async function withMigrations(change: (migrations: Migrations) => Migrations): Promise<string> {
  const { parts: _, ...about } = await checkArchive(at("whole.tar"), {
    signal: new AbortController().signal,
  });
  const postgres = about.postgres as { migrations: Migrations };
  return archiveOf({ ...about, postgres: { ...postgres, migrations: change(postgres.migrations) } });
}

const migration = (number: number, name: string) => ({ number, name, checksum: "0", servedFrom: 1 });
