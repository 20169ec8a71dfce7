import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { sql } from "kysely";
import { expect, it } from "vitest";
import { migrate } from "../../src/data/migrate.ts";
import { createLog } from "../../src/log.ts";
import { createTestDatabase } from "../support/postgres.ts";

const MIGRATIONS = join(import.meta.dirname, "../../src/data/migrations");
const log = createLog({ level: "silent" });

it("the IAM migration makes each existing account a member of the organization that owns the account's API keys", async () => {
  await using database = await createTestDatabase({ empty: true });
  const { db, connection } = database;
  const folder = await mkdtemp(join(tmpdir(), "inlet-migrations-"));
  try {
    for (const file of ["0001_spine.sql", "0002_leases.sql"])
      await cp(join(MIGRATIONS, file), join(folder, file));
    await migrate({ connection, log, directory: pathToFileURL(`${folder}/`) });
  } finally {
    await rm(folder, { recursive: true });
  }
  const account = "acc_01jc9x2k4v8m3n5p7q9r1s0";
  const insert = (text: string) => sql.raw(text).execute(db);
  await insert("INSERT INTO organizations VALUES ('org_a', 'a', now(), now())");
  for (const id of [account, "acc_nobodys"]) {
    await insert(`INSERT INTO accounts VALUES ('${id}', 'default', true, 'active', now(), now())`);
  }
  await insert(`
    INSERT INTO api_keys (id, organization_id, account_id, name, hash, permissions, created_at, updated_at)
    VALUES ('key_a', 'org_a', '${account}', 'k', sha256('k'), '{*}', now(), now())`);

  await migrate({ connection, log });
  expect(await db.selectFrom("accounts").select(["id", "organizationId"]).orderBy("id").execute()).toEqual([
    { id: account, organizationId: "org_a" },
    { id: "acc_nobodys", organizationId: null },
  ]);
  expect(
    await db
      .selectFrom("memberships")
      .select(["id", "accountId", "organizationId", "role", "roleIds", "permissions"])
      .execute(),
  ).toEqual([
    {
      id: "mem_01jc9x2k4v8m3n5p7q9r1s0",
      accountId: account,
      organizationId: "org_a",
      role: 0,
      roleIds: [],
      permissions: [],
    },
  ]);
});
