import { Hono } from "hono";
import type { Topics } from "../../bus/topics.ts";
import { hasApp } from "../../data/app-lookup.ts";
import type { Queryable } from "../../data/database.ts";
import type { ApiEnv } from "../../http/context.ts";
import { answerList, pageQuerySchema } from "../../http/page.ts";
import { notFound } from "../../http/problem.ts";
import { mapBounded } from "../../lib/map-bounded.ts";
import { parseQuery, pathParam, type Resource } from "../resource.ts";
import { listTopics } from "./queries.ts";
import { answerOf } from "./schema.ts";

export interface TopicsDeps {
  readonly db: Queryable;
  readonly topics: Pick<Topics, "find">;
}

const CONCURRENCY = 16;

export const topicsResource: Resource<TopicsDeps> = {
  path: "/apps/:appId/topics",
  create({ db, topics }) {
    return new Hono<ApiEnv>().get("/", async (c) => {
      const scope = { organizationId: c.get("caller").organizationId, appId: pathParam(c, "appId") };
      const page = parseQuery(c, pageQuerySchema);
      if (!(await hasApp(db, scope.organizationId, scope.appId))) throw notFound("app");
      const { items, total } = await listTopics(db, scope, page);
      const answers = await mapBounded(items, CONCURRENCY, async (row) =>
        answerOf(row, await topics.find(row.topic)),
      );
      return answerList(c, { items: answers, total });
    });
  },
};
