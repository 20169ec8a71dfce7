import { recordChannelAudit } from "../../../data/accounts/audit.ts";
import { openAddress } from "../../../data/channels/address-columns.ts";
import { insertChannel, type NewChannel, type WriteContext } from "../../../data/channels/channels.ts";
import { isUniqueViolation, type Queryable, type Trx } from "../../../data/database.ts";
import type { Keyring } from "../../../data/keyring/keyring.ts";
import type { ChannelRow } from "../../../data/tables.ts";
import type { Caller } from "../../../http/context.ts";
import { conflict, notFound } from "../../../http/errors.ts";
import type { Listed, Page } from "../../../http/page.ts";
import { listPage } from "../../kit/list-page.ts";
import type { RowDeps } from "../../kit/resource-spec.ts";
import { getChannel } from "../app-channel.ts";
import { type AppScope, COUNTED_CHANNELS, rejectSystemApp, requireApp, requireOwnApp } from "../app-scope.ts";

/** @throws ApiError 404 if the app does not exist; 409 if it has a channel with this uid, is the system app, or a row limit is reached */
export async function addChannel(
  db: Queryable,
  caller: Caller,
  scope: AppScope,
  channel: NewChannel,
  context: WriteContext & Pick<RowDeps, "requireRoom">,
): Promise<ChannelRow> {
  try {
    return await db.transaction().execute(async (trx) => {
      const app = await requireOwnApp(trx, scope, "keyShare");
      await context.requireRoom(trx, caller, COUNTED_CHANNELS);
      const row = await insertChannel(trx, app, channel, context);
      await recordChannelAudit(trx, caller, "create", row, context.nowMs);
      return row;
    });
  } catch (error) {
    if (isUniqueViolation(error, "channels_uid"))
      throw conflict("The app already has a channel with this uid.");
    throw error;
  }
}

/** @throws ApiError 404 if the app does not exist */
export async function listChannels(db: Queryable, scope: AppScope, page: Page): Promise<Listed<ChannelRow>> {
  await requireApp(db, scope);
  const all = db.selectFrom("channels").selectAll().where("appId", "=", scope.appId);
  return listPage(all, page, ["number"]);
}

/** Runs `write` with the channel locked. @throws ApiError 404; 409 for the system app's channel */
export async function writeChannel<T>(
  { db, keyring }: { readonly db: Queryable; readonly keyring: Keyring },
  scope: AppScope,
  name: string,
  write: (trx: Trx, row: ChannelRow) => Promise<T>,
): Promise<T> {
  return db.transaction().execute(async (trx) => {
    const { number } = await getChannel(trx, keyring, scope, name);
    const locked = trx.selectFrom("channels").selectAll().where("number", "=", number).forUpdate();
    const row = await locked.executeTakeFirst();
    // The address may have been rotated before the lock was acquired.
    if (!row || (row.uid !== name && openAddress(keyring, row) !== name)) throw notFound("channel");
    rejectSystemApp(row);
    return write(trx, row);
  });
}
