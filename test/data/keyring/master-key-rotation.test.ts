import { sql } from "kysely";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { answerPlace } from "../../../src/data/idempotency.ts";
import { type Keyring, openKeyring, WrongMasterKeyError } from "../../../src/data/keyring/keyring.ts";
import { rotateMasterKey, SEALED_COLUMNS } from "../../../src/data/keyring/master-key-rotation.ts";
import { UnavailableError } from "../../../src/lib/errors.ts";
import { insertLeftover } from "../../conformance/victim.ts";
import { createTestApi, type TestApi } from "../../support/api.ts";
import { itDeep } from "../../support/deep-run.ts";
import { until } from "../../support/until.ts";

const from = Buffer.alloc(32, 1);
const to = Buffer.alloc(32, 2);

let api: TestApi;
beforeEach(async () => {
  api = await createTestApi();
});
afterEach(() => api[Symbol.asyncDispose]());

const open = (masterKey: Buffer, newMasterKey?: Buffer): Promise<Keyring> =>
  openKeyring({ db: api.database.db, masterKey, newMasterKey, clock: Date.now });
const rotate = (signal = new AbortController().signal) =>
  rotateMasterKey({ db: api.database.db, from, to, signal });

const connect = async (call = api.call): Promise<string> => {
  const body = {
    name: "x",
    kind: "bearer",
    config: { token: "t" },
    allowedOrigins: ["https://api.example.com"],
  };
  const created = await call("POST", "/connections", body);
  if (created.status !== 200) throw new Error(JSON.stringify(created.body));
  return created.body.id;
};

/** Fills every sealed column. Returns a function that reads the values with a keyring. */
async function fill() {
  const { db } = api.database;
  const blueprint = await api.call("POST", "/blueprints", {
    title: "x",
    channels: [
      { uid: "main", kind: "webhook", config: { verification: { scheme: "hmac", in: "header", name: "x" } } },
    ],
  });
  const app = (await api.call("POST", "/apps/install", { blueprintId: blueprint.body.id })).body;
  const [channel] = app.channels;
  await api.call("PUT", `/apps/${app.id}/channels/${channel.id}`, {
    config: { secrets: [{ value: "hush" }] },
  });
  await db
    .insertInto("subscriptions")
    .values({
      id: "sub_1",
      organizationId: app.organizationId,
      appId: app.id,
      eventUid: "*",
      state: "active",
      connectionId: null,
      startAt: "now",
      startMs: 0,
      handler: "{}",
      sealedHandlerSecret: api.keyring.seal("s", "subscriptions/sub_1/handler"),
      createdAt: new Date(),
      updatedAt: new Date(),
    })
    .execute();
  const named = { "idempotency-key": "once" };
  await api.call("POST", "/spaces", { name: "once" }, named);
  const id = await connect();
  const { keyring } = api;
  await db
    .insertInto("connectionTokens")
    .values({
      connectionId: id,
      generation: 3,
      connectionVersion: 1,
      sealedTokens: keyring.seal("{}", `connections/${id}/tokens/3`),
    } as never)
    .execute();
  await insertLeftover(db, app.organizationId, id);
  for (const registration of await db.selectFrom("registrations").select("id").execute())
    await db
      .updateTable("registrations")
      .set({ sealedContents: keyring.seal("{}", `registrations/${registration.id}/contents`) })
      .where("id", "=", registration.id)
      .execute();
  const stateHash = Buffer.alloc(32, 9);
  await db
    .insertInto("connectionAuthorizations")
    .values({
      stateHash,
      connectionId: id,
      connectionVersion: 1,
      accountId: "a",
      keyId: null,
      redirectUri: "r",
      sealedVerifier: keyring.seal("v", `connections/${id}/authorizations/${stateHash.toString("hex")}`),
      createdAt: new Date(),
      expiresAt: new Date(Date.now() + 60_000),
    })
    .execute();
  return { appId: app.id, connectionId: id };
}

async function openAll({ open: unseal }: Keyring): Promise<readonly string[]> {
  const { db } = api.database;
  const opened: string[] = [];
  const channels = await db.selectFrom("channels").selectAll().execute();
  for (const row of channels)
    if (row.sealedAddress !== null) opened.push(unseal(row.sealedAddress, `channels/${row.number}/address`));
  for (const row of channels)
    if (row.sealedSettings !== null)
      opened.push(unseal(row.sealedSettings, `channels/${row.number}/settings`));
  for (const row of await db.selectFrom("idempotencyKeys").selectAll().execute())
    if (row.sealedAnswer !== null) opened.push(unseal(row.sealedAnswer, answerPlace(row)));
  for (const row of await db.selectFrom("connections").selectAll().execute())
    opened.push(unseal(row.sealedSecrets, `connections/${row.id}/secrets`));
  for (const row of await db.selectFrom("connectionTokens").selectAll().execute())
    if (row.sealedTokens !== null)
      opened.push(unseal(row.sealedTokens, `connections/${row.connectionId}/tokens/${row.generation}`));
  for (const row of await db.selectFrom("connectionAuthorizations").selectAll().execute())
    opened.push(
      unseal(
        row.sealedVerifier,
        `connections/${row.connectionId}/authorizations/${row.stateHash.toString("hex")}`,
      ),
    );
  for (const { id, sealedHandlerSecret } of await db.selectFrom("subscriptions").selectAll().execute())
    if (sealedHandlerSecret !== null) opened.push(unseal(sealedHandlerSecret, `subscriptions/${id}/handler`));
  for (const { id, sealedContents } of await db.selectFrom("registrations").selectAll().execute())
    if (sealedContents !== null) opened.push(unseal(sealedContents, `registrations/${id}/contents`));
  for (const { sealedFacts } of await db.selectFrom("untoldFirstStart").selectAll().execute())
    opened.push(unseal(sealedFacts, "untold_first_start/facts"));
  return opened;
}

describe("rotating the master key", () => {
  it("reencrypts all secrets, so that only the new master key can decrypt the secrets", async () => {
    await fill();
    const before = await open(from);
    const texts = await openAll(before);
    expect(texts).toHaveLength(SEALED_COLUMNS.length);
    expect(await rotate()).toEqual({ kind: "rotated", resealed: SEALED_COLUMNS.length });
    const after = await open(to);
    expect(await openAll(after)).toEqual(texts);
    expect(after.channelIdKey).toEqual(before.channelIdKey);
    expect(after.accessTokenKey).toEqual(before.accessTokenKey);
    await expect(open(from)).rejects.toThrow(WrongMasterKeyError);
    expect(await rotate()).toEqual({ kind: "already" });
    await expect(rotateMasterKey({ ...rotation(), from, to: Buffer.alloc(32, 3) })).rejects.toThrow(
      WrongMasterKeyError,
    );
  });

  it("covers every encrypted column of the database schema", async () => {
    const { rows } = await sql<{ name: string }>`
      SELECT table_name || '.' || column_name AS name FROM information_schema.columns
      WHERE table_schema = 'public' AND column_name LIKE 'sealed%' AND table_name <> 'cluster'`.execute(
      api.database.db,
    );
    expect(rows.map(({ name }) => name).sort()).toEqual(
      SEALED_COLUMNS.map(({ table, column }) => `${table}.${column}`).sort(),
    );
  });

  itDeep("reencrypts all rows, even if there are more rows than fit into one batch", async () => {
    const id = await connect();
    await sql`
      INSERT INTO connections (id, organization_id, name, kind, config, sealed_secrets, allowed_origins, state, created_at, updated_at)
      SELECT 'copy' || n, organization_id, name, kind, config, sealed_secrets, allowed_origins, state, created_at, updated_at
      FROM connections, generate_series(1, 1100) AS n WHERE id = ${id}`.execute(api.database.db);
    // A copied text belongs to another row. The rotation names the row and changes no data.
    await expect(rotate()).rejects.toThrow("connections/copy");
    expect(await openAll(await open(from)).catch((error: Error) => error.message)).toContain("another row");
    const { keyring } = api;
    for (const { id: copy } of await api.database.db.selectFrom("connections").select("id").execute()) {
      const sealedSecrets = keyring.seal(`{"token":"${copy}"}`, `connections/${copy}/secrets`);
      await api.database.db
        .updateTable("connections")
        .set({ sealedSecrets })
        .where("id", "=", copy)
        .execute();
    }
    expect(await rotate()).toEqual({ kind: "rotated", resealed: 1_102 });
    expect(await openAll(await open(to))).toHaveLength(1_102);
  });

  it("changes no data if it is interrupted, and succeeds at the next attempt", async () => {
    await fill();
    const texts = await openAll(await open(from));
    for (const { table } of SEALED_COLUMNS) {
      // A row locked by another transaction stops the rotation after it has resealed all earlier columns.
      const holder = await api.database.connect();
      try {
        await holder.query(`BEGIN; SELECT FROM ${table} FOR UPDATE`);
        const running = rotate();
        running.catch(() => {});
        await until(async () => {
          const { rowCount } = await holder.query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()",
          );
          return rowCount === 1;
        });
        await expect(running).rejects.toThrow(UnavailableError);
      } finally {
        await holder.end();
      }
      expect(await openAll(await open(from))).toEqual(texts);
    }
    const stopped = new AbortController();
    stopped.abort(new Error("stopped"));
    await expect(rotate(stopped.signal)).rejects.toThrow("stopped");
    expect(await openAll(await open(from))).toEqual(texts);
    await expect(open(to)).rejects.toThrow(WrongMasterKeyError);
    expect(await rotate()).toMatchObject({ kind: "rotated" });
    expect(await openAll(await open(to))).toEqual(texts);
  });
});

describe("a gateway that runs during a master key rotation", () => {
  it("continues to work if it was started with the old and the new key", async () => {
    await fill();
    const keyring = await open(from, to);
    await rotate();
    const texts = await openAll(keyring);
    expect(await keyring.reload()).toBe(true);
    const sealed = keyring.seal("new", "here");
    expect((await open(to)).open(sealed, "here")).toBe("new");
    expect(texts).toHaveLength(SEALED_COLUMNS.length);
  });

  it("rejects new secrets with 503 if it knows only the old key, and asks for a restart", async () => {
    const { appId } = await fill();
    await rotate();
    expect(await api.keyring.reload()).toBe(false);
    const channel = { uid: "late", kind: "webhook", config: { secrets: [{ value: "hush" }] } };
    const refused = await api.call("POST", `/apps/${appId}/channels`, channel);
    expect(refused.status).toBe(503);
    const body = {
      name: "x",
      kind: "bearer",
      config: { token: "t" },
      allowedOrigins: ["https://api.example.com"],
    };
    expect((await api.call("POST", "/connections", body)).status).toBe(503);
    expect(() => api.keyring.open(sealedNow(), "here")).toThrow("restart this gateway");
    // Changes without secrets still work.
    expect((await api.call("POST", "/spaces", { name: "late" })).status).toBe(200);
  });

  const sealedNow = (): string => "s1.0123456789abcdef.AAAA";
});

const rotation = () => ({ db: api.database.db, signal: new AbortController().signal });
