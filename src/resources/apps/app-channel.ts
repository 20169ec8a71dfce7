import { CHANNEL_ID_EXAMPLE } from "../../channels/entity.ts";
import type { Queryable } from "../../data/database.ts";
import type { ChannelRow } from "../../data/tables.ts";
import { notFound } from "../../http/problem.ts";
import { CHANNEL_ID_PATTERN } from "../../lib/secrets/channel-id.ts";
import { pathText } from "../kit/params.ts";
import { type AppScope, appParams } from "./app-scope.ts";

/** The app and the channel in a path. */
export const channelParams = {
  ...appParams,
  channelId: pathText(CHANNEL_ID_PATTERN, "channel", CHANNEL_ID_EXAMPLE),
};

/** A channel's address is looked up in its app only: one that is another's is not there. @throws ApiError 404 */
export async function getChannel(
  db: Queryable,
  { organizationId, appId }: AppScope,
  id: string,
): Promise<ChannelRow> {
  const row = await db
    .selectFrom("channels")
    .selectAll()
    .where("id", "=", id)
    .where("appId", "=", appId)
    .where("organizationId", "=", organizationId)
    .executeTakeFirst();
  if (!row) throw notFound("channel");
  return row;
}
