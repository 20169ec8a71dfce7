import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { rotate } from "../../src/cli/rotate-master-key.ts";
import { loadConfig } from "../../src/config/load.ts";
import { openKeyring } from "../../src/data/keyring/keyring.ts";
import { rotateMasterKey } from "../../src/data/keyring/master-key-rotation.ts";
import { createMasterKeyWatch, loadMasterKeys, openMasterKeyring } from "../../src/gateway/master-keys.ts";
import { prepareNextMasterKey } from "../../src/lib/secrets/master-key.ts";
import { createLog } from "../../src/log.ts";
import { createTestChanges } from "../support/changes.ts";
import { runInlet } from "../support/command.ts";
import { itDeep } from "../support/deep-run.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { until } from "../support/until.ts";

const { signal } = new AbortController();
const log = createLog({ level: "silent" });
const none = { masterKey: undefined, newMasterKey: undefined };

let database: TestDatabase;
let dir: string;
beforeEach(async () => {
  database = await createTestDatabase();
  dir = await mkdtemp(join(tmpdir(), "inlet-keys-"));
});
afterEach(async () => {
  await database[Symbol.asyncDispose]();
  await rm(dir, { recursive: true });
});

const openFrom = async (settings = none) =>
  openMasterKeyring(database.db, await loadMasterKeys(settings, dir), Date.now);

describe("the master key file in the data directory", () => {
  it("is deleted again if the gateway just created it and the database already has another key", async () => {
    await openFrom();
    await rm(join(dir, "master.key"));
    await expect(openFrom()).rejects.toThrow("does not match this database");
    expect(await readdir(dir)).toEqual([]);
  });

  it("is not deleted if it already existed, even if it does not match the database", async () => {
    await openFrom();
    const other = `${Buffer.alloc(32, 7).toString("base64")}\n`;
    await writeFile(join(dir, "master.key"), other);
    await expect(openFrom()).rejects.toThrow("does not match this database");
    expect(await readFile(join(dir, "master.key"), "utf8")).toBe(other);
  });

  it("keeps the old key if a rotation was interrupted before the database used the new key", async () => {
    const before = await openFrom();
    await prepareNextMasterKey(dir);
    const sealed = before.seal("text", "here");
    expect((await openFrom()).open(sealed, "here")).toBe("text");
    expect(await readdir(dir)).toEqual(["master.key"]);
  });

  it("gets the new key at the next start if a rotation was interrupted after the database used the new key", async () => {
    await openFrom();
    const { masterKey } = await loadMasterKeys(none, dir);
    const next = await prepareNextMasterKey(dir);
    await rotateMasterKey({ db: database.db, from: masterKey, to: next, signal });
    const sealed = (await openFrom()).seal("text", "here");
    expect(await readdir(dir)).toEqual(["master.key"]);
    expect((await loadMasterKeys(none, dir)).masterKey).toEqual(next);
    expect((await openFrom()).open(sealed, "here")).toBe("text");
  });
});

describe("rotate-master-key", () => {
  const url = (): string => {
    const { host, user, database: name } = database.connection;
    return `postgresql://${user}@localhost/${name}?host=${encodeURIComponent(host)}`;
  };
  const [old, fresh] = [Buffer.alloc(32, 1).toString("base64"), Buffer.alloc(32, 2).toString("base64")];

  async function run(env: Readonly<Record<string, string>>): Promise<string> {
    const loaded = loadConfig(env);
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.error));
    let printed = "";
    const print = async (text: string) => {
      printed += text;
    };
    await rotate(loaded.value, { log, signal, print });
    return printed;
  }

  it("changes the master key of an external database, and prints the next step", async () => {
    await openKeyring({ db: database.db, masterKey: Buffer.from(old, "base64"), clock: Date.now });
    const env = {
      DATABASE_URL: url(),
      INLET_MASTER_KEY: old,
      INLET_NEW_MASTER_KEY: fresh,
      INLET_DATA_DIR: dir,
    };
    expect(await run(env)).toContain("set INLET_MASTER_KEY to the new key");
    expect(await run(env)).toContain("already active");
    expect(await run({ ...env, INLET_MASTER_KEY: fresh })).toContain("No change");
  });

  it("requires INLET_NEW_MASTER_KEY if the current key is set in INLET_MASTER_KEY", async () => {
    expect(await runInlet(["rotate-master-key"], { env: { INLET_MASTER_KEY: old } })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("INLET_NEW_MASTER_KEY: is required"),
    });
  });

  itDeep("creates a new key in the data directory, and the next start uses this key", async () => {
    expect(await run({ INLET_DATA_DIR: dir })).toContain("master.key contains the new key");
    expect(await readdir(dir)).not.toContain("master.key.next");
    await run({ INLET_DATA_DIR: dir, INLET_NEW_MASTER_KEY: fresh });
    expect(await readFile(join(dir, "master.key"), "utf8")).toBe(`${fresh}\n`);
  });
});

it("a running gateway is ready after a master key rotation only if it was started with the new master key", async () => {
  const masterKey = Buffer.alloc(32, 1);
  const newMasterKey = Buffer.alloc(32, 2);
  const open = (newKey?: Buffer) =>
    openKeyring({ db: database.db, masterKey, newMasterKey: newKey, clock: Date.now });
  const changes = createTestChanges();
  const [lacking, having] = [
    createMasterKeyWatch({ keyring: await open(), changes, log }),
    createMasterKeyWatch({ keyring: await open(newMasterKey), changes, log }),
  ];
  await rotateMasterKey({ db: database.db, from: masterKey, to: newMasterKey, signal });
  changes.change({ kind: "masterKey", key: "" });
  await until(() => lacking.problem() !== undefined);
  expect(lacking.problem()).toContain("restart");
  expect(having.problem()).toBeUndefined();
});
