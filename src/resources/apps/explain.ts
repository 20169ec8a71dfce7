import { z } from "zod";
import { definitionsSchema } from "../../event/definition.ts";
import type { Shown } from "../../http/fields.ts";
import { redactTexts } from "../../lib/secrets/redact.ts";
import { explainedItemSchema, MAX_EXPLAINED_ITEMS, renderExplainedItem } from "../events/explained-item.ts";
import type { Resource } from "../kit/resource.ts";
import { defineRoute } from "../kit/route.ts";
import { channelParams, getChannel, getCompiledChannel } from "./app-channel.ts";
import { appScopeOf } from "./app-scope.ts";
import { explainedDelivery, verificationSchema, verifyGiven } from "./verify-given.ts";

const explainSchema = z.strictObject({
  ...explainedDelivery,
  events: definitionsSchema
    .optional()
    .describe("Definitions to try instead of the channel's. The channel is not changed."),
});

const explanationSchema = z
  .object({
    verification: verificationSchema,
    received: z.int().meta({
      description: `Number of items. Only the first ${MAX_EXPLAINED_ITEMS} are listed in \`items\`.`,
    }),
    items: z.array(explainedItemSchema),
  })
  .meta({
    id: "Explanation",
    description: "How a delivery would be processed, step by step, without publishing it.",
  });

export type Explanation = Shown<z.output<typeof explanationSchema>>;

export const explanations: Resource = {
  tag: "Channels",
  params: channelParams,
  routes: (deps) => [
    defineRoute({
      at: "POST /apps/:appId/channels/:channelId/explain",
      operation: "explainDelivery",
      summary: "Explain how a delivery would be processed",
      description:
        "Processes the delivery like a received one, without publishing, storing or counting it. Shows the verification, the items, the values of each path, schema errors, topics, ids and whether an id is already known. Use `events` to try other definitions.",
      body: explainSchema,
      answer: explanationSchema,
      async handle({ caller, params, body }) {
        const { db, keyring, explain } = deps;
        const { number } = await getChannel(db, keyring, appScopeOf(caller, params), params.channelId);
        const channel = await getCompiledChannel(deps, number, body.events);
        const { verification, delivery } = await verifyGiven(deps, channel, body);
        if (delivery === undefined) return { verification, received: 0, items: [] };
        const items = await explain(channel, delivery);
        return {
          verification,
          received: items.length,
          items: redactTexts(
            items.slice(0, MAX_EXPLAINED_ITEMS).map(renderExplainedItem),
            channel.sender.createRedactor(delivery),
          ),
        };
      },
    }),
  ],
};
