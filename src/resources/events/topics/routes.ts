import { pageQuerySchema } from "../../../http/page.ts";
import { mapBounded } from "../../../lib/map-bounded.ts";
import { appParams, appScopeOf, requireApp } from "../../apps/app-scope.ts";
import { listOf } from "../../kit/answer.ts";
import { listPage } from "../../kit/list-page.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { renderTopic, topicSchema } from "./schema.ts";

const CONCURRENCY = 16;

export const topics: Resource = {
  tag: "Topics",
  params: appParams,
  routes: ({ db, topics }) => [
    defineRoute({
      at: "GET /apps/:appId/topics",
      operation: "listTopics",
      summary: "List the topics of an app",
      description:
        "Includes topics of deleted channels and event definitions as long as they contain events.",
      query: pageQuerySchema,
      answer: listOf(topicSchema),
      async handle({ caller, params, query }) {
        const scope = appScopeOf(caller, params);
        await requireApp(db, scope);
        const ours = db
          .selectFrom("topics")
          .select(["topic", "channelUid", "type"])
          .where((eb) => eb.and({ ...scope }));
        const { items, total } = await listPage(ours, query, ["createdAt", "topic"]);
        const rendered = await mapBounded(items, CONCURRENCY, async (row) =>
          renderTopic(row, await topics.find(row.topic)),
        );
        return { items: rendered, total };
      },
    }),
  ],
};
