import { createHash } from "node:crypto";
import { sql } from "kysely";
import { operatorOf } from "../../src/data/accounts/audit-entry.ts";
import type { Database, Queryable } from "../../src/data/database.ts";
import type { Keyring } from "../../src/data/keyring/keyring.ts";
import { openProblem, type Sighting } from "../../src/data/problems/problems.ts";
import { saveAgentSubscription } from "../../src/data/subscriptions/agent-subscriptions.ts";
import { insertDeadLetter } from "../../src/data/subscriptions/dead-letters.ts";
import { createId } from "../../src/lib/ids.ts";
import { createChannelId } from "../../src/lib/secrets/channel-id.ts";
import type { TestSpine } from "../support/spine.ts";

/** Returns everything stored about an organization as one comparable object: rows of all tables and Redis keys. */
export async function keptOf({ api, server }: TestSpine, organizationId: string): Promise<object> {
  const { db } = api.database;
  const tables = await sql<{ name: string }>`
    SELECT table_name AS name FROM information_schema.tables
    WHERE table_schema = 'public' AND table_type = 'BASE TABLE' ORDER BY 1`.execute(db);
  const kept: Record<string, string> = {};
  for (const { name } of tables.rows) {
    // Counts of rejected requests describe callers without access, so they may change.
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

/** Returns random ids of the same form. For channels, the second id is one that no gateway has created. */
export function listForeignIds(id: string, channelIdKey: Buffer): readonly string[] {
  if (ENTRY_ID.test(id)) return ["1700000000000-7"];
  if (id.match(CHANNEL_ID)) return [createChannelId(channelIdKey), createChannelId(Buffer.alloc(32))];
  const other = id.replace(ID, (_, prefix: string) => createId(prefix, Date.now()));
  if (other === id) throw new Error(`unknown form of id: ${id}`);
  return [other];
}

/** Returns all ids in a text. */
export const idsIn = (text: string): readonly string[] => [
  ...(text.match(ID) ?? []),
  ...(text.match(CHANNEL_ID) ?? []),
];

/** Inserts a registration that the provider has not removed after its channel was deleted. */
export async function insertLeftover(
  db: Queryable,
  organizationId: string,
  connectionId: string,
): Promise<string> {
  const now = new Date();
  const id = createId("reg", now.getTime());
  await db
    .insertInto("registrations")
    .values({
      id,
      organizationId,
      appId: createId("app", now.getTime()),
      channelUid: "main",
      channelNumber: null,
      replacedBy: null,
      connectionId,
      preset: "github",
      target: "repository",
      params: "{}",
      baseUrl: null,
      state: "removing",
      providerId: "1",
      sealedContents: null,
      // No registrar runs in these tests.
      nextAt: now,
      leaseHolder: null,
      createdAt: now,
      updatedAt: now,
    })
    .execute();
  return id;
}

/** Inserts entities that the API cannot create. Each function returns the id. */
export interface Plant {
  /** Inserts a dead letter, because a handler takes a day to produce one. */
  readonly deadLetter: (subscriptionId: string) => Promise<string>;
  /** Inserts a problem of the organization, because a real one needs a failing check. */
  readonly problem: () => Promise<string>;
  /** Inserts the registration of a deleted channel, because a real one needs a provider. */
  readonly leftover: (connectionId: string) => Promise<string>;
  /** Inserts the subscription of an agent to the type `e` of the channel `agents`, because a real one needs an endpoint. */
  readonly agentSubscription: (appId: string) => Promise<string>;
}

export const createPlant = (
  db: Database["db"],
  organizationId: string,
  openKeys: () => Keyring | Promise<Keyring>,
): Plant => ({
  deadLetter: (subscriptionId) => insertDeadLetterFor(db, subscriptionId),
  problem: () => raiseIn(db, organizationId),
  leftover: (connectionId) => insertLeftover(db, organizationId, connectionId),
  agentSubscription: async (appId) => insertAgentSubscription(db, await openKeys(), organizationId, appId),
});

async function insertAgentSubscription(
  db: Database["db"],
  keyring: Keyring,
  organizationId: string,
  appId: string,
): Promise<string> {
  const nowMs = Date.now();
  const { id: keyId, accountId } = await db
    .selectFrom("apiKeys")
    .select(["id", "accountId"])
    .where("organizationId", "=", organizationId)
    .where("permissions", "@>", sql<string[]>`ARRAY['*']`)
    .executeTakeFirstOrThrow();
  const agentId = createId("agent", nowMs);
  const wanted = {
    ...{ agentId, appId, eventUid: "agents:e", principal: `${organizationId}/${keyId}` },
    ...{ secret: "whsec_", expiresAtMs: nowMs + 3_600_000 },
    agent: {
      ...{ name: `${appId}.agents.e`, arguments: {}, url: "https://agent.example/hook", keyId, accountId },
      start: { after: "0-0", appended: 0 },
    },
  };
  await saveAgentSubscription(db, keyring, operatorOf(organizationId), wanted, nowMs);
  const { id } = await db
    .selectFrom("subscriptions")
    .select("id")
    .where("agentId", "=", agentId)
    .executeTakeFirstOrThrow();
  return id;
}

/** Inserts a dead letter, as if the subscription's handler had not taken an event. */
export async function insertDeadLetterFor(db: Queryable, subscriptionId: string): Promise<string> {
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

/** Inserts a problem, as if a connection of the organization had failed. */
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
    message: "The issuer rejects the settings of the connection.",
    suggestedAction: "Correct the settings.",
  };
  const opened = await openProblem(db, sighting, { seenSince: new Date(nowMs), nowMs });
  return opened?.id ?? "";
}
