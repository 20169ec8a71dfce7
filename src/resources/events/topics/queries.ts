import type { Queryable } from "../../../data/database.ts";
import type { TopicRow } from "../../../data/tables.ts";
import type { Listed, Page } from "../../../http/page.ts";

/** The app's topics, those of deleted channels included while anything is in them; in order of creation, then name. */
export async function listTopics(
  db: Queryable,
  { organizationId, appId }: { readonly organizationId: string; readonly appId: string },
  { limit, offset }: Page,
): Promise<Listed<Pick<TopicRow, "topic" | "channelUid" | "type">>> {
  const ours = db
    .selectFrom("topics")
    .where("appId", "=", appId)
    .where("organizationId", "=", organizationId);
  const { total } = await ours
    .select(({ fn }) => fn.countAll<number>().as("total"))
    .executeTakeFirstOrThrow();
  const items = await ours
    .select(["topic", "channelUid", "type"])
    .orderBy("createdAt")
    .orderBy("topic")
    .limit(limit)
    .offset(offset)
    .execute();
  return { items, total };
}
