import { recordAudit } from "../../../data/accounts/audit.ts";
import { type AuditAction, type Author, channelName } from "../../../data/accounts/audit-entry.ts";
import {
  deleteChannel,
  insertChannel,
  type NewChannel,
  type WriteContext,
} from "../../../data/channels/channels.ts";
import { isUniqueViolation, type Queryable, type Trx } from "../../../data/database.ts";
import type { ChannelRow } from "../../../data/tables.ts";
import type { Listed, Page } from "../../../http/page.ts";
import { conflict, notFound } from "../../../http/problem.ts";
import { findChannel } from "../app-channel.ts";
import type { AppScope } from "../app-scope.ts";

const appRow = (db: Queryable, { organizationId, appId }: AppScope) =>
  db
    .selectFrom("apps")
    .select(["id", "organizationId"])
    .where("id", "=", appId)
    .where("organizationId", "=", organizationId);

/** @throws ApiError 404 where there is no such app, 409 when it has a channel of that uid. */
export async function addChannel(
  db: Queryable,
  author: Author,
  ref: AppScope,
  channel: NewChannel,
  context: WriteContext,
): Promise<ChannelRow> {
  try {
    return await db.transaction().execute(async (trx) => {
      // Against an app that is deleted meanwhile.
      const app = await appRow(trx, ref).forKeyShare().executeTakeFirst();
      if (!app) throw notFound("app");
      const row = await insertChannel(trx, app, channel, context);
      await noteChannel(trx, author, "create", row, context.nowMs);
      return row;
    });
  } catch (error) {
    if (isUniqueViolation(error, "channels_uid"))
      throw conflict("The app has a channel of that uid already.");
    throw error;
  }
}

export async function listChannels(
  db: Queryable,
  { organizationId, appId }: AppScope,
  page: Page,
): Promise<Listed<ChannelRow>> {
  const all = db
    .selectFrom("channels")
    .where("appId", "=", appId)
    .where("organizationId", "=", organizationId);
  const items = await all.selectAll().orderBy("number").limit(page.limit).offset(page.offset).execute();
  const { total } = await all.select((eb) => eb.fn.countAll<number>().as("total")).executeTakeFirstOrThrow();
  return { items, total };
}

/** Writes to a channel under its lock; undefined where there is no such channel. */
export async function writeChannel<T>(
  db: Queryable,
  scope: AppScope,
  id: string,
  write: (trx: Trx, row: ChannelRow) => Promise<T>,
): Promise<T | undefined> {
  return db.transaction().execute(async (trx) => {
    const found = await findChannel(trx, scope, id);
    const row = found && (await lockChannel(trx, found.number));
    // Given another address in the meantime, it is no longer at this one.
    return row?.id === id ? write(trx, row) : undefined;
  });
}

/** Deletes the channel once `check` lets it be; false where there is none. @throws whatever `check` throws */
export async function removeChannel(
  db: Queryable,
  author: Author,
  ref: AppScope,
  id: string,
  options: {
    readonly purge: boolean;
    readonly nowMs: number;
    readonly check: (row: ChannelRow) => void;
  },
): Promise<boolean> {
  const removed = await writeChannel(db, ref, id, async (trx, row) => {
    options.check(row);
    await deleteChannel(trx, row, options);
    await noteChannel(trx, author, "delete", row, options.nowMs);
    return true;
  });
  return removed === true;
}

const lockChannel = (trx: Queryable, number: number): Promise<ChannelRow | undefined> =>
  trx.selectFrom("channels").selectAll().where("number", "=", number).forUpdate().executeTakeFirst();

/** Notes who changes the channel. */
export const noteChannel = (
  trx: Trx,
  author: Author,
  action: AuditAction,
  row: Pick<ChannelRow, "appId" | "uid">,
  nowMs: number,
  fields: readonly string[] = [],
): Promise<void> =>
  recordAudit(trx, author, { action, entity: "channel", id: channelName(row), fields }, nowMs);
