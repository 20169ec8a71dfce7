import { sql } from "kysely";
import { expect, it } from "vitest";
import { setSchemaVersions } from "../../../src/data/channels/schema-versions.ts";
import { opened } from "../../support/opened.ts";
import { createTestDatabase } from "../../support/postgres.ts";

const database = opened(createTestDatabase);

/** More topics than a statement of PostgreSQL has parameters. */
const TOPICS = 70_000;

it("versions are set for more topics than a statement has parameters, and removed with the schemas", async () => {
  const { db } = database;
  await sql`
    INSERT INTO topics (topic, organization_id, app_id, channel_number, channel_uid, type, max_age_seconds, max_entries, max_bytes, created_at)
    SELECT 't' || n, 'org_1', 'app_1', 1, 'main', 'e' || n, 60, 1, 1, now() FROM generate_series(1, ${TOPICS}) AS n`.execute(
    db,
  );
  const set = (schema: boolean | undefined) =>
    db.transaction().execute((trx) =>
      setSchemaVersions(
        trx,
        Array.from({ length: TOPICS }, (_, at) => ({ topic: `t${at + 1}`, schema })),
        Date.now(),
      ),
    );
  const versions = () =>
    db
      .selectFrom("topics")
      .select(["schemaVersion"])
      .select(({ fn }) => fn.countAll<number>().as("count"))
      .groupBy("schemaVersion")
      .orderBy("schemaVersion")
      .execute();
  await set(true);
  expect(await versions()).toEqual([{ schemaVersion: 1, count: TOPICS }]);
  await set(undefined);
  expect(await versions()).toEqual([{ schemaVersion: null, count: TOPICS }]);
});
