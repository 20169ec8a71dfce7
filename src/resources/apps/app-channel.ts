import { CHANNEL_ID_EXAMPLE, canSeeAddresses } from "../../channels/entity.ts";
import { hasAddress, openAddress } from "../../data/channels/address-columns.ts";
import type { Queryable } from "../../data/database.ts";
import type { Keyring } from "../../data/keyring/keyring.ts";
import type { ChannelRow } from "../../data/tables.ts";
import type { Definition } from "../../event/definition.ts";
import type { Caller } from "../../http/context.ts";
import { invalidParameters, notFound } from "../../http/errors.ts";
import { tryDefinitions } from "../../ingest/check-definitions.ts";
import type { CompiledChannel } from "../../ingest/compile-channel.ts";
import type { Deps } from "../kit/deps.ts";
import { pathText } from "../kit/params.ts";
import { type AppScope, appParams } from "./app-scope.ts";

export const channelParams = {
  ...appParams,
  channelId: pathText(/^[A-Za-z0-9_-]{1,64}$/, "channel", CHANNEL_ID_EXAMPLE).meta({
    description: "The channel's id or uid.",
    example: CHANNEL_ID_EXAMPLE,
  }),
};

/** Finds one of the app's channels by its id or uid. @throws ApiError 404 if the app has no such channel */
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
    // A text can be the id of one channel and the uid of another. `false` sorts before `true`, so the id match wins.
    .orderBy((eb) => eb("uid", "=", name))
    .limit(1)
    .executeTakeFirst();
  if (!row) throw notFound("channel");
  return row;
}

/**
 * Returns the channel as the gateway processes its deliveries, or with other definitions if `events` has some.
 * @throws ApiError 404 if the channel was deleted; 400 if a definition is invalid
 */
export async function getCompiledChannel(
  { findCompiledChannel, schemas, stopping }: Deps,
  number: number | undefined,
  events?: readonly Definition[],
): Promise<CompiledChannel> {
  const stored = number === undefined ? undefined : await findCompiledChannel(number);
  if (!stored) throw notFound("channel");
  if (events === undefined) return stored;
  const tried = await tryDefinitions(schemas, stored, events, stopping);
  if (!tried.ok) throw invalidParameters(tried.error);
  return tried.value;
}

/** Returns the channel's secret address if the caller may see addresses, and otherwise the channel's uid. */
export const getVisibleName = (keyring: Keyring, caller: Caller, row: ChannelRow): string =>
  canSeeAddresses(caller) ? openAddress(keyring, row) : row.uid;

/** Returns the internal ids of all channels of the app. If `one.number` is set, returns only that id, provided the app has the channel. */
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
