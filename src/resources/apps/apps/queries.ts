import { sql } from "kysely";
import { recordAudit, recordChannelAudit } from "../../../data/accounts/audit.ts";
import { type InstalledApp, insertApp, type NewApp } from "../../../data/apps/apps.ts";
import { recordChange } from "../../../data/changes.ts";
import { deleteChannel, type NewChannel, type WriteContext } from "../../../data/channels/channels.ts";
import type { Queryable, Trx } from "../../../data/database.ts";
import { recordRemovals } from "../../../data/removals.ts";
import type { Caller } from "../../../http/context.ts";
import { notFound } from "../../../http/errors.ts";
import type { Deps } from "../../kit/deps.ts";
import { requireRow, SPACES } from "../../kit/references.ts";
import { type AppScope, COUNTED_CHANNELS, requireOwnApp } from "../app-scope.ts";
import type { AppFilters } from "./schema.ts";

/** Selects the apps of the caller's organization. With a text, only those whose uid or title contains it. */
export const findApps = (db: Queryable, { organizationId }: Caller, { search }: AppFilters) =>
  db
    .selectFrom("apps")
    .where("organizationId", "=", organizationId)
    .$if(search !== undefined, (apps) =>
      apps.where(sql<boolean>`strpos(lower(uid || chr(10) || title), lower(${search})) > 0`),
    );

/** Installs an app. @throws ApiError 404 if the space or the blueprint does not exist; 409 if a row limit is reached */
export async function installApp(
  db: Queryable,
  caller: Caller,
  app: NewApp,
  channels: readonly NewChannel[],
  context: WriteContext & Pick<Deps, "requireRoom">,
): Promise<InstalledApp> {
  return db.transaction().execute(async (trx) => {
    await context.requireRoom(trx, caller, { table: "apps", words: "apps", omitsSystem: true });
    await context.requireRoom(trx, caller, COUNTED_CHANNELS, channels.length);
    await requireRow(trx, caller, SPACES, app.spaceId);
    if (app.blueprintId !== null) await lockBlueprint(trx, app.blueprintId);
    return insertApp(trx, caller, app, channels, context);
  });
}

/**
 * Prevents deletion of the blueprint until the transaction ends. The caller has already checked access, because a store
 * artifact may offer a blueprint of another organization.
 */
async function lockBlueprint(trx: Trx, id: string): Promise<void> {
  const found = await trx
    .selectFrom("blueprints")
    .select("id")
    .where("id", "=", id)
    .forKeyShare()
    .executeTakeFirst();
  if (!found) throw notFound("blueprint");
}

export const appChannels = (db: Queryable, appId: string) =>
  db.selectFrom("channels").selectAll().where("appId", "=", appId).orderBy("number");

/** Deletes an app with its channels and subscriptions. @throws ApiError 404 if the app does not exist; 409 for the built-in system app */
export async function deleteApp(
  db: Queryable,
  caller: Caller,
  scope: AppScope,
  options: { readonly purge: boolean; readonly nowMs: number },
): Promise<void> {
  const { nowMs } = options;
  await db.transaction().execute(async (trx) => {
    const { id, organizationId } = await requireOwnApp(trx, scope, "update");
    const subscriptions = await trx
      .deleteFrom("subscriptions")
      .where("appId", "=", id)
      .returning("id")
      .execute();
    for (const subscription of subscriptions) {
      await recordChange(trx, { kind: "subscription", key: subscription.id });
      const entry = { action: "delete", entity: "subscription", id: subscription.id } as const;
      await recordAudit(trx, caller, entry, nowMs);
    }
    await recordRemovals(
      trx,
      subscriptions.map((one) => ({ kind: "subscription", id: one.id, organizationId })),
      nowMs,
    );
    for (const channel of await appChannels(trx, id).forUpdate().execute()) {
      await deleteChannel(trx, channel, options);
      await recordChannelAudit(trx, caller, "delete", channel, nowMs);
    }
    await trx.deleteFrom("apps").where("id", "=", id).execute();
    await recordAudit(trx, caller, { action: "delete", entity: "app", id }, nowMs);
    await recordChange(trx, { kind: "app", key: id });
  });
}
