import { z } from "zod";
import { shortListQuery } from "../../../http/page.ts";
import { mapBounded } from "../../../lib/map-bounded.ts";
import { appScopeOf, subscriptionParams } from "../../apps/app-scope.ts";
import { listOf } from "../../kit/answer.ts";
import { slicePage } from "../../kit/list-page.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { getSubscription } from "./queries.ts";

const CONCURRENCY = 16;

const readerSchema = z
  .object({
    name: z.string().meta({
      description: "Name that the reader chose for itself. Gateways that call a handler are also readers.",
    }),
    topics: z.int().meta({ description: "Number of topics that the reader has read." }),
    pending: z
      .int()
      .meta({ description: "Number of entries that the reader has received but not acknowledged." }),
    idleSeconds: z.number().meta({ description: "Seconds since the reader last requested entries." }),
  })
  .meta({ id: "Reader", description: "A reader of a subscription, with totals over all its topics." });

export const subscriptionReaders: Resource = {
  tag: "Subscriptions",
  params: subscriptionParams,
  routes: ({ db, readings }) => [
    defineRoute({
      at: "GET /apps/:appId/subscriptions/:subscriptionId/readers",
      operation: "listReaders",
      summary: "List the readers of a subscription",
      description: "Lists the readers by name, each with the number of its unacknowledged entries.",
      query: shortListQuery,
      answer: listOf(readerSchema),
      async handle({ caller, params, query }) {
        const { row, topics } = await getSubscription(db, appScopeOf(caller, params), params.subscriptionId);
        const found = await mapBounded(topics, CONCURRENCY, (topic) => readings.listReaders(topic, row.id));
        const byName = Map.groupBy(found.flat(), ({ name }) => name);
        const readers = [...byName]
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([name, places]) => ({
            name,
            topics: places.length,
            pending: places.reduce((sum, { pending }) => sum + pending, 0),
            idleSeconds: Math.min(...places.map(({ idleMs }) => idleMs)) / 1000,
          }));
        return slicePage(readers, query);
      },
    }),
  ],
};
