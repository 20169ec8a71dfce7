import { recordAudit } from "../../../data/accounts/audit.ts";
import { type AuditEntity, type Author, channelName } from "../../../data/accounts/audit-entry.ts";
import { type InstalledApp, insertApp, type NewApp } from "../../../data/apps/apps.ts";
import { recordChange } from "../../../data/changes.ts";
import { deleteChannel, type NewChannel, type WriteContext } from "../../../data/channels/channels.ts";
import type { Queryable, Trx } from "../../../data/database.ts";
import { recordRemovals } from "../../../data/removals.ts";
import type { AppRow } from "../../../data/tables.ts";
import type { Listed, Page } from "../../../http/page.ts";
import { notFound } from "../../../http/problem.ts";
import { changedFields } from "../../../lib/changed-fields.ts";
import { isId } from "../../../lib/ids.ts";

/**
 * Makes the app and its channels in one transaction.
 *
 * @throws ApiError 404 where the organization has no such space, or the blueprint is there no longer.
 */
export async function installApp(
  db: Queryable,
  author: Author,
  app: NewApp,
  channels: readonly NewChannel[],
  context: WriteContext,
): Promise<InstalledApp> {
  return db.transaction().execute(async (trx) => {
    await requireSpace(trx, app);
    if (app.blueprintId !== null) await holdBlueprint(trx, app.blueprintId);
    return insertApp(trx, author, app, channels, context);
  });
}

/** Holds the space until the transaction ends. */
async function requireSpace(
  trx: Trx,
  { spaceId, organizationId }: Pick<NewApp, "spaceId" | "organizationId">,
): Promise<void> {
  const found = await trx
    .selectFrom("spaces")
    .select("id")
    .where("id", "=", spaceId)
    .where("organizationId", "=", organizationId)
    .forKeyShare()
    .executeTakeFirst();
  if (!found) throw notFound("space");
}

/** Nobody deletes it until the transaction ends. It was found for the organization, of which an artifact's need not be. */
async function holdBlueprint(trx: Trx, id: string): Promise<void> {
  const found = await trx
    .selectFrom("blueprints")
    .select("id")
    .where("id", "=", id)
    .forKeyShare()
    .executeTakeFirst();
  if (!found) throw notFound("blueprint");
}

export async function findApp(
  db: Queryable,
  organizationId: string,
  id: string,
): Promise<AppRow | undefined> {
  if (!isId("app", id)) return undefined;
  return db
    .selectFrom("apps")
    .selectAll()
    .where("id", "=", id)
    .where("organizationId", "=", organizationId)
    .executeTakeFirst();
}

export async function listApps(db: Queryable, organizationId: string, page: Page): Promise<Listed<AppRow>> {
  const all = db.selectFrom("apps").where("organizationId", "=", organizationId);
  const items = await all
    .selectAll()
    .orderBy("createdAt")
    .orderBy("id")
    .limit(page.limit)
    .offset(page.offset)
    .execute();
  const { total } = await all.select((eb) => eb.fn.countAll<number>().as("total")).executeTakeFirstOrThrow();
  return { items, total };
}

/** Changes the row under a lock; undefined where there is no such app. */
export async function updateApp(
  db: Queryable,
  author: Author,
  id: string,
  change: (before: AppRow) => Pick<AppRow, "title" | "description" | "projectId">,
  nowMs: number,
): Promise<AppRow | undefined> {
  return db.transaction().execute(async (trx) => {
    const before = await lockApp(trx, author.organizationId, id);
    if (!before) return undefined;
    const content = change(before);
    const fields = changedFields(before, { ...before, ...content });
    await recordAudit(trx, author, { action: "update", entity: "app", id, fields }, nowMs);
    await recordChange(trx, { kind: "app", key: before.id });
    return trx
      .updateTable("apps")
      .set({ ...content, updatedAt: new Date(nowMs) })
      .where("id", "=", before.id)
      .returningAll()
      .executeTakeFirst();
  });
}

/** Deletes the app with its channels and subscriptions; false where there is no such app. */
export async function deleteApp(
  db: Queryable,
  author: Author,
  id: string,
  options: { readonly purge: boolean; readonly nowMs: number },
): Promise<boolean> {
  return db.transaction().execute(async (trx) => {
    const app = await lockApp(trx, author.organizationId, id);
    if (!app) return false;
    const note = (entity: AuditEntity, entityId: string): Promise<void> =>
      recordAudit(trx, author, { action: "delete", entity, id: entityId }, options.nowMs);
    for (const deleted of await deleteSubscriptions(trx, app, options.nowMs))
      await note("subscription", deleted);
    const channels = await trx
      .selectFrom("channels")
      .selectAll()
      .where("appId", "=", app.id)
      .orderBy("number")
      .forUpdate()
      .execute();
    for (const channel of channels) {
      await deleteChannel(trx, channel, options);
      await note("channel", channelName(channel));
    }
    await trx.deleteFrom("apps").where("id", "=", app.id).execute();
    await note("app", app.id);
    await recordChange(trx, { kind: "app", key: app.id });
    return true;
  });
}

/** Answers their ids. */
async function deleteSubscriptions(trx: Trx, app: AppRow, nowMs: number): Promise<readonly string[]> {
  const deleted = await trx.deleteFrom("subscriptions").where("appId", "=", app.id).returning("id").execute();
  for (const { id } of deleted) await recordChange(trx, { kind: "subscription", key: id });
  const { organizationId } = app;
  await recordRemovals(
    trx,
    deleted.map(({ id }) => ({ kind: "subscription", id, organizationId })),
    nowMs,
  );
  return deleted.map(({ id }) => id);
}

const lockApp = (trx: Trx, organizationId: string, id: string): Promise<AppRow | undefined> =>
  isId("app", id)
    ? trx
        .selectFrom("apps")
        .selectAll()
        .where("id", "=", id)
        .where("organizationId", "=", organizationId)
        .forUpdate()
        .executeTakeFirst()
    : Promise.resolve(undefined);
