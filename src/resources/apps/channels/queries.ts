import { recordChannelAudit } from "../../../data/accounts/audit.ts";
import { openAddress } from "../../../data/channels/address-columns.ts";
import { insertChannel, type NewChannel, type WriteContext } from "../../../data/channels/channels.ts";
import { isUniqueViolation, type Queryable, type Trx } from "../../../data/database.ts";
import type { Keyring } from "../../../data/keyring/keyring.ts";
import type { ChannelRow } from "../../../data/tables.ts";
import type { Caller } from "../../../http/context.ts";
import { conflict, notFound } from "../../../http/errors.ts";
import type { Deps } from "../../kit/deps.ts";
import { getChannel } from "../app-channel.ts";
import { type AppScope, COUNTED_CHANNELS, rejectSystemApp, requireOwnApp } from "../app-scope.ts";

/** Creates a channel. @throws ApiError 404 if the app does not exist; 409 for a duplicate uid, a reached row limit or the system app */
export async function addChannel(
  db: Queryable,
  caller: Caller,
  scope: AppScope,
  channel: NewChannel,
  context: WriteContext & Pick<Deps, "requireRoom">,
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

/** Locks the channel and calls `write`. @throws ApiError 404 if the channel does not exist; 409 for the system app's channel */
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
    // Check the name again, because another request may have changed the channel's address before the lock was acquired.
    if (!row || (row.uid !== name && openAddress(keyring, row) !== name)) throw notFound("channel");
    rejectSystemApp(row);
    return write(trx, row);
  });
}
