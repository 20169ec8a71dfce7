import { sql } from "kysely";
import { PROBLEMS_CHANNEL, SYSTEM_APP } from "../../event/problem.ts";
import { createId } from "../../lib/ids.ts";
import { recordChange } from "../changes.ts";
import {
  deleteChannel,
  insertChannel,
  type NewChannel,
  updateChannel,
  type WriteContext,
} from "../channels/channels.ts";
import { isUniqueViolation, type Queryable, type Trx } from "../database.ts";

export interface SystemChannel {
  readonly number: number;
  readonly appId: string;
  readonly organizationId: string;
  readonly uid: string;
  readonly kind: string;
  readonly topics: ReadonlyMap<string, string>;
}

const AT_ONCE = 200;

/**
 * Creates the system app in each organization without one, and adds missing event definitions. Keeps obsolete definitions, because
 * gateways of an earlier version may still use them.
 *
 * Writes no audit entries, because no caller requested these changes.
 */
export async function ensureSystemApps(
  db: Queryable,
  channel: NewChannel,
  context: WriteContext & { readonly signal: AbortSignal },
): Promise<void> {
  const { signal } = context;
  const missing = await db
    .selectFrom("organizations as o")
    .select("o.id")
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom("apps as a")
            .select("a.id")
            .whereRef("a.organizationId", "=", "o.id")
            .where("a.isSystem", "=", true),
        ),
      ),
    )
    .orderBy("o.id")
    .limit(AT_ONCE)
    .execute();
  for (const { id } of missing) {
    if (signal.aborted) return;
    await makeSystemApp(db, id, channel, context);
  }
  const types = channel.events.map(({ type }) => type);
  const all = JSON.stringify(types.map((type) => ({ type })));
  const channels = await db
    .selectFrom("channels")
    .selectAll()
    .where("isSystem", "=", true)
    .where(sql<boolean>`NOT (events::jsonb @> ${all}::jsonb)`)
    .limit(AT_ONCE)
    .execute();
  for (const row of channels) {
    const known = new Set(row.events.map(({ type }) => type));
    if (signal.aborted) return;
    const events = [...row.events, ...channel.events.filter(({ type }) => !known.has(type))];
    await db.transaction().execute((trx) => updateChannel(trx, row, { ...channel, events }, context));
  }
}

async function makeSystemApp(
  db: Queryable,
  organizationId: string,
  channel: NewChannel,
  context: WriteContext,
): Promise<void> {
  const at = new Date(context.nowMs);
  try {
    await db.transaction().execute(async (trx) => {
      // Check that the organization still exists, because it may have been deleted after it was listed.
      const organization = await trx
        .selectFrom("organizations")
        .select("id")
        .where("id", "=", organizationId)
        .forKeyShare()
        .executeTakeFirst();
      if (!organization) return;
      const app = await trx
        .insertInto("apps")
        .values({
          id: createId("app", context.nowMs),
          organizationId,
          isSystem: true,
          uid: SYSTEM_APP.uid,
          title: SYSTEM_APP.title,
          description: "Events that Inlet publishes about this organization.",
          blueprintId: null,
          artifactId: null,
          projectId: null,
          spaceId: null,
          createdAt: at,
          updatedAt: at,
        })
        .returningAll()
        .executeTakeFirstOrThrow();
      await recordChange(trx, { kind: "app", key: app.id });
      const { number } = await insertChannel(trx, app, channel, context);
      await trx.updateTable("channels").set({ isSystem: true }).where("number", "=", number).execute();
    });
  } catch (error) {
    // Ignore this error: another gateway, whose lease for this task has just expired, created the system app at the same time.
    if (!isUniqueViolation(error, "apps_system")) throw error;
  }
}

/**
 * Finds the channel of the system app, on which Inlet publishes events about an organization. Returns `undefined` if it does not
 * exist yet.
 */
export async function findSystemChannel(
  db: Queryable,
  organizationId: string,
): Promise<SystemChannel | undefined> {
  const channel = await db
    .selectFrom("channels")
    .select(["number", "appId", "organizationId", "uid", "kind"])
    .where("organizationId", "=", organizationId)
    .where("isSystem", "=", true)
    .where("uid", "=", PROBLEMS_CHANNEL.uid)
    .executeTakeFirst();
  if (!channel) return undefined;
  const topics = await db
    .selectFrom("topics")
    .select(["type", "topic"])
    .where("channelNumber", "=", channel.number)
    .execute();
  return { ...channel, topics: new Map(topics.map(({ type, topic }) => [type, topic])) };
}

/** Removes the system app of a deleted organization. Its published events are removed later. */
export async function removeSystemApp(trx: Trx, organizationId: string, nowMs: number): Promise<void> {
  const channels = await trx
    .selectFrom("channels")
    .selectAll()
    .where("organizationId", "=", organizationId)
    .where("isSystem", "=", true)
    .forUpdate()
    .execute();
  for (const row of channels) await deleteChannel(trx, row, { purge: true, nowMs });
  await trx
    .deleteFrom("apps")
    .where("organizationId", "=", organizationId)
    .where("isSystem", "=", true)
    .execute();
}
