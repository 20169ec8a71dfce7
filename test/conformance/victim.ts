import { createHash } from "node:crypto";
import { sql } from "kysely";
import type { Queryable } from "../../src/data/database.ts";
import { openProblem, type Sighting } from "../../src/data/problems/problems.ts";
import { insertDeadLetter } from "../../src/data/subscriptions/dead-letters.ts";
import { createId } from "../../src/lib/ids.ts";
import { createChannelId } from "../../src/lib/secrets/channel-id.ts";
import type { TestSpine } from "../support/spine.ts";

/** Everything that is kept about an organization, as one value to compare: rows of all tables, keys on the bus. */
export async function keptOf({ api, server }: TestSpine, organizationId: string): Promise<object> {
  const { db } = api.database;
  const tables = await sql<{ name: string }>`
    SELECT table_name AS name FROM information_schema.tables
    WHERE table_schema = 'public' AND table_type = 'BASE TABLE' ORDER BY 1`.execute(db);
  const kept: Record<string, string> = {};
  for (const { name } of tables.rows) {
    // Counts of refusals tell of those who may not; nothing of the organization changes with them.
    if (name === "audit_refusals") continue;
    const { rows } = await sql<{ rows: string | null }>`
      SELECT string_agg(one::text, E'\n' ORDER BY one::text) AS rows FROM ${sql.table(name)} AS one
      WHERE one::text LIKE ${`%${organizationId}%`}`.execute(db);
    kept[name] = rows[0]?.rows ?? "";
  }
  for (const key of (await server.client.keys(`*${organizationId}*`)).sort()) {
    const dump = await server.client.dumpBuffer(key);
    kept[key] = createHash("sha256")
      .update(dump ?? "")
      .digest("hex");
  }
  return kept;
}

const ID = /\b([a-z]+)_[0-9a-hjkmnp-tv-z]{23}\b/g;
const CHANNEL_ID = /\bch_[0-9a-hjkmnp-tv-z]{36}\b/g;
const ENTRY_ID = /^\d+-\d+$/;

/** An id of the same form that nothing has; of channels, the second is one that no gateway has made. */
export function strangersTo(id: string, channelIdKey: Buffer): readonly string[] {
  if (ENTRY_ID.test(id)) return ["1700000000000-7"];
  if (id.match(CHANNEL_ID)) return [createChannelId(channelIdKey), createChannelId(Buffer.alloc(32))];
  const other = id.replace(ID, (_, prefix: string) => createId(prefix, Date.now()));
  if (other === id) throw new Error(`what would another id like ${id} be?`);
  return [other];
}

/** All ids in a text. */
export const idsIn = (text: string): readonly string[] => [
  ...(text.match(ID) ?? []),
  ...(text.match(CHANNEL_ID) ?? []),
];

/** A dead letter, as if the subscription's handler had not taken an event. */
export async function buryIn(db: Queryable, subscriptionId: string): Promise<string> {
  const event = { topic: "events.gone", entryId: "1700000000000-0", type: "push", fields: ["data", "1"] };
  const letter = { subscriptionId, ...event, attempts: [], reason: "HTTP 500" };
  await insertDeadLetter(db, letter, Date.now());
  const [made] = await db
    .selectFrom("deadLetters")
    .select("id")
    .where("subscriptionId", "=", subscriptionId)
    .execute();
  return made?.id ?? "";
}

/** A problem, as if a connection of its had failed. */
export async function raiseIn(db: Queryable, organizationId: string): Promise<string> {
  const nowMs = Date.now();
  const sighting: Sighting = {
    organizationId,
    subject: createId("con", nowMs),
    about: {},
    figures: {},
    kind: "connection_failing",
    level: "raised",
    severity: "error",
    message: "Its issuer refuses its settings.",
    suggestedAction: "Correct them.",
  };
  const opened = await openProblem(db, sighting, { seenSince: new Date(nowMs), nowMs });
  return opened?.id ?? "";
}
