import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { createKey } from "../../src/cli/create-key.ts";
import { revokeKey } from "../../src/cli/revoke-key.ts";
import { loadConfig } from "../../src/config/load.ts";
import { createApiKey } from "../../src/data/accounts/api-keys.ts";
import { createOrganization } from "../../src/data/accounts/organizations.ts";
import { openDatabase } from "../../src/data/database.ts";
import { startLocalPostgres } from "../../src/data/local-postgres.ts";
import { migrate } from "../../src/data/migrate.ts";
import { acquireDataLock } from "../../src/lib/servers/data-lock.ts";
import { createLog } from "../../src/log.ts";
import { createTestApi } from "../support/api.ts";
import { itDeep } from "../support/deep-run.ts";
import { opened } from "../support/opened.ts";

const api = opened(createTestApi);
const log = createLog({ level: "silent" });
const { signal } = new AbortController();

async function run(env: Readonly<Record<string, string>>, named: string) {
  const loaded = loadConfig(env);
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.error));
  let printed = "";
  const print = async (text: string) => {
    printed += text;
  };
  const code = await revokeKey(loaded.value, named, { log, signal, print });
  return { code, printed };
}

it("keys revoke --local accepts an id, a prefix or a whole key, and can revoke the last key with all permissions", async () => {
  const { host, user, database } = api.database.connection;
  const env = {
    DATABASE_URL: `postgresql://${user}@localhost/${database}?host=${encodeURIComponent(host)}`,
    INLET_MASTER_KEY: Buffer.alloc(32, 1).toString("base64"),
  };
  const made = await api.call.post("/iam/api-keys", { name: "k", permissions: ["iam.read"] });
  expect(await run(env, made.id)).toMatchObject({ code: 0, printed: expect.stringContaining(made.id) });
  const next = await api.call.post("/iam/api-keys", { name: "k" });
  expect((await run(env, next.prefix)).code).toBe(0);
  const other = await api.call.post("/organizations", { name: "other" });
  const revoked = await run(env, other.apiKey.key);
  expect(revoked.code).toBe(0);
  expect(revoked.printed).not.toContain(other.apiKey.key);
  expect((await api.as(other.apiKey.key)("GET", "/spaces")).status).toBe(401);
  expect((await api.as(made.key)("GET", "/iam/roles")).status).toBe(401);
  const [entry] = await api.call.get(`/audit?entity=apiKey&entityId=${made.id}&limit=200&offset=1`);
  expect(entry).toMatchObject({ action: "revoke", accountId: null, keyId: null });

  expect(await run(env, made.id)).toMatchObject({
    code: 0,
    printed: expect.stringContaining("was already revoked"),
  });
  for (const unknown of ["key_none", "ik_", ""]) expect((await run(env, unknown)).code).toBe(1);
});

it("keys create --local creates an API key for the operator's organization, records this in the audit log, and shows the key once", async () => {
  const { host, user, database } = api.database.connection;
  const env = {
    DATABASE_URL: `postgresql://${user}@localhost/${database}?host=${encodeURIComponent(host)}`,
    INLET_MASTER_KEY: Buffer.alloc(32, 1).toString("base64"),
  };
  const loaded = loadConfig(env);
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.error));
  let printed = "";
  const print = async (text: string) => {
    printed += text;
  };
  const wish = { name: "found again", permissions: ["iam.read"], expiresAt: null };
  expect(await createKey(loaded.value, wish, { log, signal, print })).toBe(0);
  const key = printed.trim();
  expect(key).toMatch(/^ik_[0-9a-z]{40}$/);
  const made = (await api.as(key)("GET", "/iam/api-keys?limit=200")).body.find(
    ({ name }: { readonly name: string }) => name === "found again",
  );
  expect(made).toMatchObject({ permissions: ["iam.read"], expiresAt: null });
  const [entry] = await api.call.get(`/audit?entity=apiKey&entityId=${made.id}`);
  expect(entry).toMatchObject({ action: "create", accountId: null, keyId: null });
});

itDeep("keys revoke --local revokes a key while a gateway runs on the embedded PostgreSQL", async () => {
  const dataDir = realpathSync(mkdtempSync(join(tmpdir(), "inlet-revoke-")));
  try {
    const lock = acquireDataLock(dataDir);
    if (!lock.ok) throw lock.error;
    using _ = lock.value;
    await using postgres = await startLocalPostgres({ dataDir, log, signal });
    await migrate({ connection: postgres.connection, log });
    await using database = openDatabase({ connection: postgres.connection, maxConnections: 1 });
    const key = await database.db.transaction().execute(async (trx) => {
      const names = { organization: "a", space: "a", account: "a" };
      const made = await createOrganization(trx, names, Date.now());
      return createApiKey(trx, { ...made, name: "k", permissions: ["*"] }, Date.now());
    });
    expect(await run({ INLET_DATA_DIR: dataDir }, key.id)).toMatchObject({ code: 0 });
    const row = await database.db.selectFrom("apiKeys").select("revokedAt").executeTakeFirstOrThrow();
    expect(row.revokedAt).toBeInstanceOf(Date);
  } finally {
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
  }
});
