import { Hono } from "hono";
import type { Topics } from "../../bus/topics.ts";
import type { Queryable } from "../../data/database.ts";
import type { ApiEnv } from "../../http/context.ts";
import { answerList, pageQuerySchema } from "../../http/page.ts";
import { mapBounded } from "../../lib/map-bounded.ts";
import { appScopeOf, requireApp } from "../app-scope.ts";
import { type PlainResource, parseQuery } from "../plain.ts";
import { listTopics } from "./queries.ts";
import { answerOf } from "./schema.ts";

export interface TopicsDeps {
  readonly db: Queryable;
  readonly topics: Pick<Topics, "find">;
}

const CONCURRENCY = 16;

export const topics: PlainResource<TopicsDeps> = {
  path: "/apps/:appId/topics",
  create({ db, topics }) {
    return new Hono<ApiEnv>().get("/", async (c) => {
      const scope = appScopeOf(c);
      const page = parseQuery(c, pageQuerySchema);
      await requireApp(db, scope);
      const { items, total } = await listTopics(db, scope, page);
      const answers = await mapBounded(items, CONCURRENCY, async (row) =>
        answerOf(row, await topics.find(row.topic)),
      );
      return answerList(c, { items: answers, total });
    });
  },
};
