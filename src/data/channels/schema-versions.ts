import { hash } from "node:crypto";
import { sql } from "kysely";
import type { Definition } from "../../event/definition.ts";
import type { Trx } from "../database.ts";

/** Maximum number of versions that are stored per topic. A new version replaces the oldest one. */
export const MAX_SCHEMA_VERSIONS = 20;

/** A topic and the schema of the definition that publishes to it. */
export interface TopicSchema {
  readonly topic: string;
  /** `undefined` if the definition has no schema. */
  readonly schema: Definition["schema"];
}

interface NumberedSchema {
  readonly topic: string;
  readonly digest: Buffer;
  readonly text: string;
  readonly version: number;
  readonly isNew: boolean;
}

/**
 * Sets the schema version of each topic. A schema that the topic had before keeps its version, and any other schema gets the next number.
 * The rows of the topics must exist, and no other transaction may change their channel.
 */
export async function setSchemaVersions(
  trx: Trx,
  topics: readonly TopicSchema[],
  nowMs: number,
): Promise<void> {
  const without = topics.flatMap(({ topic, schema }) => (schema === undefined ? [topic] : []));
  if (without.length > 0)
    await trx
      .updateTable("topics")
      .set({ schemaVersion: null })
      .where(sql<boolean>`topic = ANY(${without})`)
      .where("schemaVersion", "is not", null)
      .execute();
  const numbered = await numberSchemas(trx, topics);
  if (numbered.length === 0) return;
  await insertVersions(
    trx,
    numbered.filter(({ isNew }) => isNew),
    nowMs,
  );
  await sql`
    UPDATE topics AS t SET schema_version = n.version
    FROM unnest(${numbered.map(({ topic }) => topic)}::text[], ${numbered.map(({ version }) => version)}::int[]) AS n (topic, version)
    WHERE t.topic = n.topic`.execute(trx);
}

async function numberSchemas(trx: Trx, topics: readonly TopicSchema[]): Promise<readonly NumberedSchema[]> {
  const schemas = topics.flatMap(({ topic, schema }) => {
    if (schema === undefined) return [];
    const text = JSON.stringify(schema);
    return [{ topic, text, digest: hash("sha256", text, "buffer") }];
  });
  if (schemas.length === 0) return [];
  const { rows } = await sql<{ topic: string; version: number | null; newest: number | null }>`
    SELECT s.topic, same.version, (SELECT max(v.version) FROM schema_versions AS v WHERE v.topic = s.topic) AS newest
    FROM unnest(${schemas.map(({ topic }) => topic)}::text[], ${schemas.map(({ digest }) => digest)}::bytea[]) AS s (topic, digest)
    LEFT JOIN schema_versions AS same ON same.topic = s.topic AND same.digest = s.digest`.execute(trx);
  const stored = new Map(rows.map(({ topic, ...row }) => [topic, row]));
  return schemas.map((schema) => {
    const { version = null, newest = null } = stored.get(schema.topic) ?? {};
    return { ...schema, version: version ?? (newest ?? 0) + 1, isNew: version === null };
  });
}

/** Maximum length of the schemas in one INSERT, in characters, and its maximum number of rows (see `ROWS_AT_ONCE` of topics). */
const CHARACTERS_AT_ONCE = 4 * 1024 * 1024;
const ROWS_AT_ONCE = 5_000;

async function insertVersions(trx: Trx, versions: readonly NumberedSchema[], nowMs: number): Promise<void> {
  let batch: NumberedSchema[] = [];
  let characters = 0;
  const flush = async (): Promise<void> => {
    if (batch.length === 0) return;
    const rows = batch.map(({ topic, version, digest, text }) => ({
      topic,
      version,
      digest,
      schema: text,
      createdAt: new Date(nowMs),
    }));
    await trx.insertInto("schemaVersions").values(rows).execute();
    await sql`
      DELETE FROM schema_versions AS v
      USING unnest(${rows.map(({ topic }) => topic)}::text[], ${rows.map(({ version }) => version)}::int[]) AS n (topic, version)
      WHERE v.topic = n.topic AND v.version <= n.version - ${MAX_SCHEMA_VERSIONS}`.execute(trx);
    batch = [];
    characters = 0;
  };
  for (const version of versions) {
    batch.push(version);
    characters += version.text.length;
    if (characters > CHARACTERS_AT_ONCE || batch.length === ROWS_AT_ONCE) await flush();
  }
  await flush();
}
