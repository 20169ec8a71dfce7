import { recordChannelAudit } from "../../../data/accounts/audit.ts";
import { openAddress } from "../../../data/channels/address-columns.ts";
import { insertChannel, type NewChannel, type WriteContext } from "../../../data/channels/channels.ts";
import { isUniqueViolation, type Queryable, type Trx } from "../../../data/database.ts";
import type { Keyring } from "../../../data/keyring/keyring.ts";
import type { ChannelRow } from "../../../data/tables.ts";
import type { Caller } from "../../../http/context.ts";
import type { Listed, Page } from "../../../http/page.ts";
import { conflict, notFound } from "../../../http/problem.ts";
import { listPage } from "../../kit/list-page.ts";
import type { RowDeps } from "../../kit/resource-spec.ts";
import { getChannel } from "../app-channel.ts";
import { type AppScope, COUNTED_CHANNELS, refuseSystem, requireApp, requireOwnApp } from "../app-scope.ts";

/** @throws ApiError 404 where there is no such app, 409 when it has a channel of that uid, or is the system app */
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
      throw conflict("The app has a channel of that uid already.");
    throw error;
  }
}

/** @throws ApiError 404 where there is no such app */
export async function listChannels(db: Queryable, scope: AppScope, page: Page): Promise<Listed<ChannelRow>> {
  await requireApp(db, scope);
  const all = db.selectFrom("channels").selectAll().where("appId", "=", scope.appId);
  return listPage(all, page, ["number"]);
}

/** Writes to a channel under its lock. @throws ApiError 404, 409 for that of the system app */
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
    // Given another address in the meantime, it is no longer at this one.
    if (!row || (row.uid !== name && openAddress(keyring, row) !== name)) throw notFound("channel");
    refuseSystem(row);
    return write(trx, row);
  });
}
