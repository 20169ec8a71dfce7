import { CHANNEL_ID_EXAMPLE, canSeeAddresses } from "../../channels/entity.ts";
import { hasAddress, openAddress } from "../../data/channels/address-columns.ts";
import type { Queryable } from "../../data/database.ts";
import type { Keyring } from "../../data/keyring/keyring.ts";
import type { ChannelRow } from "../../data/tables.ts";
import type { Caller } from "../../http/context.ts";
import { notFound } from "../../http/problem.ts";
import { pathText } from "../kit/params.ts";
import { type AppScope, appParams } from "./app-scope.ts";

/** The app and the channel in a path, the channel by its id or its uid. */
export const channelParams = {
  ...appParams,
  channelId: pathText(/^[A-Za-z0-9_-]{1,64}$/, "channel", CHANNEL_ID_EXAMPLE).meta({
    description: "The channel's id or uid.",
    example: CHANNEL_ID_EXAMPLE,
  }),
};

/** A channel's address or uid is looked up in its app only: one that is another's is not there. @throws ApiError 404 */
export async function getChannel(
  db: Queryable,
  keyring: Pick<Keyring, "addressHashKey">,
  { organizationId, appId }: AppScope,
  name: string,
): Promise<ChannelRow> {
  const row = await db
    .selectFrom("channels")
    .selectAll()
    .where((eb) => eb.or([hasAddress(keyring, name), eb("uid", "=", name)]))
    .where("appId", "=", appId)
    .where("organizationId", "=", organizationId)
    // A uid may look like the id of another channel.
    .orderBy((eb) => eb("uid", "=", name))
    .limit(1)
    .executeTakeFirst();
  if (!row) throw notFound("channel");
  return row;
}

/** The name by which the caller is told of a channel that is deleted: its id or, where that is not theirs to see, its uid. */
export const shownName = (keyring: Keyring, caller: Caller, row: ChannelRow): string =>
  canSeeAddresses(caller) ? openAddress(keyring, row) : row.uid;

/** The numbers of the app's channels, or of the one that has that number. */
export async function findChannelNumbers(
  db: Queryable,
  scope: AppScope,
  one: { readonly number?: number } = {},
): Promise<readonly number[]> {
  const rows = await db
    .selectFrom("channels")
    .select("number")
    .where((eb) => eb.and({ ...scope, ...one }))
    .orderBy("number")
    .execute();
  return rows.map(({ number }) => number);
}
