import type { Topics } from "../bus/topics/topics.ts";
import type { Queryable } from "../data/database.ts";
import { forgetRetiredTopic } from "../data/topics.ts";

/**
 * Forgets a topic that was retired before `before` and holds nothing any more: its row, and its stream with the groups on
 * it. The row is locked meanwhile: a channel that takes the topic up again waits, and begins with a new one.
 */
export async function forgetTopic(
  { db, topics }: { readonly db: Queryable; readonly topics: Pick<Topics, "deleteEmpty"> },
  topic: string,
  before: Date,
): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const row = await trx
      .selectFrom("topics")
      .select("topic")
      .where("topic", "=", topic)
      .where("retiredAt", "<", before)
      .forUpdate()
      .executeTakeFirst();
    if (!row) return;
    if (await topics.deleteEmpty(topic)) await forgetRetiredTopic(trx, topic);
  });
}
