import type { Queryable } from "../../data/database.ts";
import type { ChannelRow } from "../../data/tables.ts";
import type { AppScope } from "./app-scope.ts";

/** A channel's address is looked up in its app only: undefined for one that is another's. */
export function findChannel(
  db: Queryable,
  { organizationId, appId }: AppScope,
  id: string,
): Promise<ChannelRow | undefined> {
  return db
    .selectFrom("channels")
    .selectAll()
    .where("id", "=", id)
    .where("appId", "=", appId)
    .where("organizationId", "=", organizationId)
    .executeTakeFirst();
}
