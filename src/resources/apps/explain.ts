import { z } from "zod";
import { definitionsSchema } from "../../event/definition.ts";
import type { VerifiedDelivery } from "../../event/received.ts";
import { invalidParameters } from "../../http/errors.ts";
import type { Shown } from "../../http/fields.ts";
import type { CompiledChannel } from "../../ingest/compile-channel.ts";
import { redactTexts } from "../../lib/secrets/redact.ts";
import { explainedItemSchema, MAX_EXPLAINED_ITEMS, renderExplainedItem } from "../events/explained-item.ts";
import type { Deps } from "../kit/deps.ts";
import type { Resource } from "../kit/resource.ts";
import { defineRoute } from "../kit/route.ts";
import { channelParams, getChannel, getCompiledChannel } from "./app-channel.ts";
import { appScopeOf } from "./app-scope.ts";
import { givenDelivery, skipVerification, toRawRequest } from "./given-delivery.ts";

const explainSchema = z.strictObject({
  method: z.string().min(1).max(16).describe("HTTP method of the request.").default("POST"),
  ...givenDelivery,
  body: z.string().describe("Body of the delivery, encoded as `bodyEncoding` states.").default(""),
  verify: z
    .boolean()
    .describe("Whether to verify the sender. With false, the delivery is treated as verified.")
    .default(true),
  events: definitionsSchema
    .optional()
    .describe("Definitions to try instead of the channel's. The channel is not changed."),
});

const explanationSchema = z
  .object({
    verification: z
      .object({
        result: z.enum(["verified", "refused", "skipped"]),
        message: z.string().nullable().meta({
          description:
            "Reason for the rejection, which the sender does not see. Null if the delivery was not rejected.",
        }),
      })
      .meta({
        description:
          "Verification of the sender. A `refused` delivery receives a 401, or a 405 if the channel does not accept its method, and is not processed.",
      }),
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
        const { db, keyring, explain, clock } = deps;
        const { number } = await getChannel(db, keyring, appScopeOf(caller, params), params.channelId);
        const channel = await getCompiledChannel(deps, number, body.events);
        const request = toRawRequest(body, clock());
        if (request.body.length > channel.limits.maxBodyBytes) {
          const message = `must not be larger than the channel's limits.maxBodyBytes (${channel.limits.maxBodyBytes})`;
          throw invalidParameters([{ path: "body", message }]);
        }
        if (body.verify && isUnaccepted(deps, channel, body.method)) {
          const message = `the channel accepts only ${channel.methods.join(", ")} (\`methods\`)`;
          return { verification: { result: "refused", message } as const, received: 0, items: [] };
        }
        const verified = body.verify ? await channel.sender.verify(request) : undefined;
        if (verified?.ok === false) {
          const verification = { result: "refused", message: verified.error.message } as const;
          return { verification, received: 0, items: [] };
        }
        const delivery: VerifiedDelivery = verified?.value ?? skipVerification(channel, request);
        const items = await explain(channel, delivery);
        return {
          verification: { result: verified ? "verified" : "skipped", message: null } as const,
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

/** Returns whether a push channel would respond to this method with 405. Other kinds receive no requests. */
const isUnaccepted = (
  { channelKinds }: Deps,
  { identity, methods }: CompiledChannel,
  method: string,
): boolean => channelKinds.get(identity.kind)?.addressed === true && !methods.includes(method);
