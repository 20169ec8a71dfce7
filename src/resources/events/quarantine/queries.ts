import type { Queryable } from "../../../data/database.ts";
import type { AppScope } from "../../apps/app-scope.ts";

/** The numbers of the app's channels, or of the one at that address; undefined where the address names none of them. */
export async function findChannelNumbers(
  db: Queryable,
  { organizationId, appId }: AppScope,
  channelId?: string,
): Promise<readonly number[] | undefined> {
  let query = db
    .selectFrom("channels")
    .select("number")
    .where("appId", "=", appId)
    .where("organizationId", "=", organizationId)
    .orderBy("number");
  if (channelId !== undefined) query = query.where("id", "=", channelId);
  const numbers = (await query.execute()).map(({ number }) => number);
  return channelId !== undefined && numbers.length === 0 ? undefined : numbers;
}

/** True when the record's channel is there still, and the app's. */
export async function hasChannel(db: Queryable, scope: AppScope, channelNumber: number): Promise<boolean> {
  const row = await db
    .selectFrom("channels")
    .select("number")
    .where("number", "=", channelNumber)
    .where("appId", "=", scope.appId)
    .where("organizationId", "=", scope.organizationId)
    .executeTakeFirst();
  return row !== undefined;
}
