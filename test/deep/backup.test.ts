import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { sql } from "kysely";
import { afterAll, expect, it } from "vitest";
import { startLocalRedis } from "../../src/bus/connection/local-redis.ts";
import { openDatabase } from "../../src/data/database.ts";
import { findLocalPostgres, startLocalPostgres } from "../../src/data/local-postgres.ts";
import { checkArchive } from "../../src/lib/archive/read-archive.ts";
import { createLog } from "../../src/log.ts";
import { type InstalledApp, installApp } from "../support/channels.ts";
import { EARLIER_MASTER_KEY, loadEarlierDatabase } from "../support/earlier-database.ts";
import { type GatewayProcess, PROGRAM_ENV, startGatewayProcess } from "../support/gateway-process.ts";
import { startHandlerServer } from "../support/handler-server.ts";
import { PollUpstream } from "../support/poll-upstream.ts";
import { until } from "../support/until.ts";

const MAIN = join(import.meta.dirname, "../../src/main.ts");
const { signal } = new AbortController();
const dir = mkdtempSync(join(tmpdir(), "inlet-drill-"));
afterAll(() => rmSync(dir, { recursive: true, force: true, maxRetries: 5 }));
const at = (...names: readonly string[]): string => join(dir, ...names);

const ENV = { ...PROGRAM_ENV, INLET_BACKUP_PASSPHRASE: "a passphrase for tests" };
const start = (dataDir: string, env = {}): Promise<GatewayProcess> =>
  startGatewayProcess({ INLET_DATA_DIR: dataDir, INLET_ALLOW_NETWORKS: "127.0.0.0/8", ...env });

interface RunResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the program until it ends, or kills it as soon as `killWhen` returns true. */
async function inlet(
  argv: readonly string[],
  options: { readonly env?: object; readonly killWhen?: () => boolean } = {},
): Promise<RunResult> {
  const { env = {}, killWhen } = options;
  const child = spawn(process.execPath, [MAIN, ...argv], { env: { ...ENV, ...env }, stdio: "pipe" });
  const written = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const)
    child[name].on("data", (chunk: Buffer) => {
      written[name] += chunk;
    });
  // Unlike `exit`, `close` follows all output.
  const closed = once(child, "close");
  if (killWhen) {
    await until(() => child.exitCode !== null || killWhen(), { everyMs: 1 });
    child.kill("SIGKILL");
  }
  const [code] = (await closed) as [number | null];
  return { code, ...written };
}

const pathOf = (app: InstalledApp, uid: string): string =>
  new URL(app.channels.find((channel) => channel.uid === uid)?.url ?? "").pathname;

/** Returns the event's status, or `undefined` when the gateway did not respond or rejected the delivery. */
async function post(origin: string, path: string, id: string): Promise<string | undefined> {
  const body = JSON.stringify({ id, filling: id.repeat(100) });
  const headers = { "content-type": "application/json" };
  const answer = await fetch(`${origin}${path}`, { method: "POST", headers, body }).catch(() => undefined);
  if (answer?.status !== 200) return undefined;
  return ((await answer.json()) as { events: { status: string }[] }).events[0]?.status;
}

async function idsOn(dataDir: string, topic: string): Promise<readonly string[]> {
  const client = new Redis({ path: join(dataDir, "run", "redis.sock") });
  try {
    const entries = await client.xrange(topic, "-", "+");
    return entries.map(([, fields]) => fields[fields.indexOf("id") + 1] ?? "");
  } finally {
    client.disconnect();
  }
}

it("a backup that is taken under load and restored elsewhere contains each acknowledged event once, and its sources and handlers continue", async () => {
  const [from, to, file] = [at("data"), at("restored"), at("drill.tar")];
  await using upstream = await PollUpstream.start();
  upstream.clear({ by: "at", paging: "cursorToken", pageSize: 20 });
  await using handler = await startHandlerServer();
  let gateway = await start(from);
  const polling = {
    request: { url: `${upstream.origin}/rows`, query: { since: "{{cursor}}" } },
    schedule: { intervalSeconds: 5 },
    discriminator: { by: "timestamp", path: "$.at" },
    pagination: { by: "cursorToken", path: "$.next", name: "token" },
    itemsPath: "$.rows",
    itemId: "$.id",
    startAt: "earliest",
  };
  const app = await installApp(gateway, [
    { uid: "hook", kind: "webhook", config: {}, events: [{ type: "t", idPath: "$.id" }] },
    { uid: "rows", kind: "polling", config: polling, events: [{ type: "row" }] },
  ]);
  const [hookTopic, rowsTopic] = [app.topicOf("hook", "t"), app.topicOf("rows", "row")];
  const path = pathOf(app, "hook");
  const subscription = await gateway.api<{ id: string }>("POST", `/apps/${app.id}/events/subscribe`, {
    eventUid: "*",
    handler: { url: handler.urlOf("/x") },
  });
  const handled = (from = 0): ReadonlySet<string> =>
    new Set(
      handler
        .taken("/x")
        .slice(from)
        .map(({ headers }) => headers["ce-id"] ?? ""),
    );
  const insert = (count: number): void => {
    for (let n = 0; n < count; n++) {
      upstream.nowMs += 500;
      upstream.insert();
    }
  };

  // These events reach the handler and are acknowledged before the backup.
  insert(50);
  const settled = Array.from({ length: 50 }, (_, n) => `settled-${n}`);
  for (const id of settled) expect(await post(gateway.origin, path, id)).toBe("published");
  await until(
    async () => {
      const { lag, pending } = await gateway.api<{ lag: number; pending: number }>(
        "GET",
        `/apps/${app.id}/subscriptions/${subscription.id}/lag`,
      );
      return handled().size >= 100 && lag === 0 && pending === 0;
    },
    { everyMs: 100 },
  );

  const acknowledged = new Set<string>();
  const ending = new AbortController();
  const senders = Array.from({ length: 4 }, async (_, sender) => {
    for (let n = 0; !ending.signal.aborted; n++) {
      const id = `load-${sender}-${n}`;
      if ((await post(gateway.origin, path, id)) !== undefined) acknowledged.add(id);
      if (n % 10 === 0) insert(1);
    }
  });
  await until(() => acknowledged.size >= 500);
  const before = [...acknowledged];
  const backup = await inlet(["backup", file], { env: { INLET_DATA_DIR: from } });
  expect([backup.code, backup.stderr]).toEqual([0, ""]);
  const atEnd = acknowledged.size;
  await until(() => acknowledged.size >= atEnd + 200);
  ending.abort();
  await Promise.all(senders);
  await gateway[Symbol.asyncDispose]();

  const restored = await inlet(["restore", file], { env: { INLET_DATA_DIR: to } });
  expect([restored.code, restored.stderr]).toEqual([0, ""]);
  expect(JSON.parse(restored.stdout)).toMatchObject({ masterKey: "file", sources: 1 });
  const takenBefore = handler.taken("/x").length;
  gateway = await start(to);
  try {
    const onHook = await idsOn(to, hookTopic);
    expect(new Set(onHook).size).toBe(onHook.length);
    const there = new Set(onHook);
    expect([...settled, ...before].filter((id) => !there.has(id))).toEqual([]);
    // The topic holds only sent events, and lacks some acknowledged after the backup: it is a backup, not a copy of the end state.
    expect(onHook.filter((id) => !id.startsWith("settled") && !id.startsWith("load"))).toEqual([]);
    const lost = [...acknowledged].filter((id) => !there.has(id));
    expect(lost.length).toBeGreaterThanOrEqual(200);

    for (const id of before.slice(0, 50)) expect(await post(gateway.origin, path, id)).toBe("duplicate");
    for (const id of lost.slice(0, 50)) expect(await post(gateway.origin, path, id)).toBe("published");

    insert(10);
    const rows = [...upstream.rows.keys()];
    await until(async () => (await idsOn(to, rowsTopic)).length >= rows.length, { everyMs: 100 });
    expect(await idsOn(to, rowsTopic)).toEqual(rows);
    const all = [...(await idsOn(to, hookTopic)), ...rows];
    await until(
      () => {
        const has = handled();
        return all.every((id) => has.has(id));
      },
      { everyMs: 100 },
    );
    const again = handled(takenBefore);
    expect([...settled, ...rows.slice(0, 50)].filter((id) => again.has(id))).toEqual([]);
  } finally {
    await gateway[Symbol.asyncDispose]();
  }
});

it("a killed backup leaves no file that looks complete, and the gateway and the next backup continue to work", async () => {
  const dataDir = at("data");
  await using gateway = await start(dataDir);
  const app = await installApp(gateway, [
    { uid: "c", kind: "webhook", config: {}, events: [{ type: "t", idPath: "$.id" }] },
  ]);
  const send = (id: string) => post(gateway.origin, pathOf(app, "c"), id);
  for (let n = 0; n < 200; n++) await send(`filling-${n}-${"x".repeat(100)}`);
  const env = { INLET_DATA_DIR: dataDir };
  const partialBytes = (file: string): number =>
    globSync(`${file}.partial-*`).reduce(
      (sum, name) => sum + (statSync(name, { throwIfNoEntry: false })?.size ?? 0),
      0,
    );
  const moments: readonly ((file: string) => boolean)[] = [
    (file) => globSync(`${file}.partial-*`).length > 0,
    (file) => partialBytes(file) > 0,
    (file) => partialBytes(file) > 20_000,
    (file) => partialBytes(file) > 60_000,
    (file) => existsSync(file),
  ];
  let partial = 0;
  for (const [n, moment] of moments.entries()) {
    const file = at(`killed-${n}.tar`);
    const killed = await inlet(["backup", file], { env, killWhen: () => moment(file) });
    if (existsSync(file)) await checkArchive(file, { signal });
    else {
      expect(killed.code).toBe(null);
      partial++;
    }
    expect(await send(`after-${n}`)).toBe("published");
  }
  // On a busy machine, some backups are complete before the signal arrives.
  expect(partial).toBeGreaterThan(0);
  const file = at("after-kills.tar");
  expect(await inlet(["backup", file], { env })).toMatchObject({ code: 0, stderr: "" });
  expect((await checkArchive(file, { signal })).parts.length).toBe(60);
  expect(globSync("*.part", { cwd: dir })).toEqual([]);
});

it("after a restore was killed, every command rejects the data folder until the restore has been repeated", async () => {
  const dataDir = at("again");
  const file = at("after-kills.tar");
  const has = (...names: readonly string[]): boolean => existsSync(join(dataDir, ...names));
  const env = { INLET_DATA_DIR: dataDir, INLET_PORT: "0" };
  const moments: readonly (() => boolean)[] = [
    () => has("restore.unfinished"),
    () => has() && readdirSync(dataDir).some((name) => name.startsWith("postgres.new-")),
    () => has("postgres"),
    () => has("redis", "restore.rdb"),
    () => has("redis", "appendonlydir"),
  ];
  for (const moment of moments) {
    const killed = await inlet(["restore", file], { env, killWhen: moment });
    expect(killed.code).toBe(null);
    for (const command of ["start", "rotate-master-key"]) {
      const refused = await inlet([command], { env });
      expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("was interrupted")]);
    }
  }
  // The master key may also come from the settings.
  const key = readFileSync(at("data", "master.key"), "utf8").trim();
  const restored = await inlet(["restore", file], { env: { ...env, INLET_MASTER_KEY: key } });
  expect([restored.code, restored.stderr]).toEqual([0, expect.stringContaining("Starting over")]);
  expect(JSON.parse(restored.stdout)).toMatchObject({ masterKey: "setting" });
  expect([has("master.key"), has("restore.unfinished")]).toEqual([false, false]);
  await using _ = await start(dataDir, { INLET_MASTER_KEY: key });
});

it("a backup of a version with 34 migrations is restored unchanged, and the next start encrypts its addresses", async () => {
  const [from, to, file] = [at("older"), at("from-older"), at("older.tar")];
  const options = { log: createLog({ level: "silent" }), signal };
  mkdirSync(join(from, "log"), { recursive: true, mode: 0o700 });
  {
    await using postgres = await startLocalPostgres({ dataDir: realpathSync(from), ...options });
    await loadEarlierDatabase(postgres.connection);
    await using _ = await startLocalRedis({ dataDir: realpathSync(from), ...options });
  }
  const addresses = async () => {
    const connection = await findLocalPostgres(realpathSync(to));
    if (connection === undefined) throw new Error("PostgreSQL is not running");
    await using database = openDatabase({ connection });
    const { rows } = await sql<{ plain: number; sealed: number; uids: string }>`
      SELECT count(id)::int AS plain, count(sealed_address)::int AS sealed, string_agg(uid, ' ' ORDER BY uid) AS uids
      FROM channels`.execute(database.db);
    return rows[0];
  };
  const uids = "orders payments returns";
  const env = { INLET_MASTER_KEY: EARLIER_MASTER_KEY.toString("base64") };
  expect(await inlet(["backup", file], { env: { ...env, INLET_DATA_DIR: from } })).toMatchObject({ code: 0 });
  expect(await inlet(["restore", file], { env: { ...env, INLET_DATA_DIR: to } })).toMatchObject({ code: 0 });
  {
    await using _ = await startLocalPostgres({ dataDir: realpathSync(to), ...options });
    expect(await addresses()).toEqual({ plain: 3, sealed: 2, uids });
  }
  await using _ = await start(to, env);
  expect(await addresses()).toEqual({ plain: 0, sealed: 3, uids });
});
