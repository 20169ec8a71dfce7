import type { Topics } from "../../../bus/topics/topics.ts";
import type { Queryable } from "../../../data/database.ts";
import { pageQuerySchema } from "../../../http/page.ts";
import { mapBounded } from "../../../lib/map-bounded.ts";
import { appParams, appScopeOf, requireApp } from "../../apps/app-scope.ts";
import { listOf } from "../../kit/answer.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { renderTopic, topicSchema } from "./schema.ts";

export interface TopicsDeps {
  readonly db: Queryable;
  readonly topics: Pick<Topics, "find">;
}

const CONCURRENCY = 16;

export const topics: Resource<TopicsDeps> = {
  path: "/apps/:appId/topics",
  tag: "Topics",
  routes: ({ db, topics }) => [
    defineRoute(
      {
        method: "get",
        path: "/",
        operation: "listTopics",
        summary: "List the topics of an app",
        description:
          "Includes topics of deleted channels and event definitions as long as they contain events.",
        params: appParams,
        query: pageQuerySchema,
        answer: listOf(topicSchema),
      },
      async ({ caller, params, query }) => {
        const scope = appScopeOf(caller, params);
        await requireApp(db, scope);
        const ours = db.selectFrom("topics").where((eb) => eb.and({ ...scope }));
        const { total } = await ours
          .select(({ fn }) => fn.countAll<number>().as("total"))
          .executeTakeFirstOrThrow();
        const items = await ours
          .select(["topic", "channelUid", "type"])
          .orderBy("createdAt")
          .orderBy("topic")
          .limit(query.limit)
          .offset(query.offset)
          .execute();
        const rendered = await mapBounded(items, CONCURRENCY, async (row) =>
          renderTopic(row, await topics.find(row.topic)),
        );
        return { items: rendered, total };
      },
    ),
  ],
};
