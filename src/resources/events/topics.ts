import { z } from "zod";
import type { TopicInfo } from "../../bus/topics/topics.ts";
import type { TopicRow } from "../../data/tables.ts";
import { type Shown, timestamp } from "../../http/fields.ts";
import { pageQuerySchema } from "../../http/page.ts";
import { formatTimestamp } from "../../lib/clock.ts";
import { mapBounded } from "../../lib/map-bounded.ts";
import { appParams, appScopeOf, requireApp } from "../apps/app-scope.ts";
import { listOf } from "../kit/answer.ts";
import { listPage } from "../kit/list-page.ts";
import { pickFields } from "../kit/pick-fields.ts";
import type { Resource } from "../kit/resource.ts";
import { defineRoute } from "../kit/route.ts";

const entrySchema = z.object({
  entryId: z.string().meta({ example: "1769851800000-0" }),
  time: timestamp.meta({ description: "When the entry was added, by Redis time." }),
});

const groupSchema = z.object({
  name: z.string(),
  consumers: z.int(),
  pending: z.int(),
  lastDeliveredId: z.string(),
  lag: z.int().nullable().meta({ description: "Number of entries not delivered yet. Null if unknown." }),
});

const topicSchema = z
  .object({
    topic: z.string().meta({ description: "Name of the Redis stream." }),
    channelUid: z.string(),
    type: z.string(),
    length: z.int(),
    firstEntry: entrySchema.nullable(),
    lastEntry: entrySchema.nullable(),
    bytes: z.int().meta({ description: "Estimated Redis memory in bytes." }),
    groups: z.array(groupSchema),
  })
  .meta({ id: "Topic", description: "The stream to which a channel publishes its events of one type." });
type Topic = Shown<z.output<typeof topicSchema>>;

/** Renders a topic. A topic without a Redis stream has no `info` and is shown as empty. */
function renderTopic(
  row: Pick<TopicRow, "topic" | "channelUid" | "type">,
  info: TopicInfo | undefined,
): Topic {
  return {
    ...pickFields(topicSchema.shape, row),
    length: info?.length ?? 0,
    firstEntry: renderEntry(info?.firstEntryId),
    lastEntry: renderEntry(info?.lastEntryId),
    bytes: info?.bytes ?? 0,
    groups: (info?.groups ?? []).map((group) => ({
      ...pickFields(groupSchema.shape, group),
      lag: group.lag ?? null,
    })),
  };
}

const renderEntry = (entryId: string | undefined): Topic["firstEntry"] =>
  entryId === undefined ? null : { entryId, time: formatTimestamp(Number.parseInt(entryId, 10)) };

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
