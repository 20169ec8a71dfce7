import { z } from "zod";
import type { Queryable } from "../../../data/database.ts";
import type { Keyring } from "../../../data/keyring/keyring.ts";
import { definitionsSchema } from "../../../event/definition.ts";
import type { VerifiedDelivery } from "../../../event/received.ts";
import { invalidParameters, notFound } from "../../../http/problem.ts";
import { tryDefinitions } from "../../../ingest/check-definitions.ts";
import type { CompiledChannel } from "../../../ingest/compiled-channel.ts";
import type { Explain } from "../../../ingest/explain.ts";
import type { Clock } from "../../../lib/clock.ts";
import type { SchemaCompiler } from "../../../lib/json-schema/compiled-schema.ts";
import { redactTexts } from "../../../lib/secrets/redact.ts";
import {
  explainedItemSchema,
  MAX_EXPLAINED_ITEMS,
  renderExplainedItem,
} from "../../events/explained-item.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { channelParams, getChannel } from "../app-channel.ts";
import { appScopeOf } from "../app-scope.ts";
import { believed, givenDelivery, requestOf } from "../given-delivery.ts";

export interface ExplainDeps {
  readonly db: Queryable;
  readonly keyring: Keyring;
  readonly explain: Explain;
  /** The channel in force; undefined where it was deleted. @throws UnavailableError */
  readonly findCompiledChannel: (channelNumber: number) => Promise<CompiledChannel | undefined>;
  readonly schemas: Pick<SchemaCompiler, "check">;
  readonly clock: Clock;
  /** Aborts when the gateway ends. */
  readonly stopping: AbortSignal;
}

const explainSchema = z.strictObject({
  method: z.string().min(1).max(16).default("POST"),
  ...givenDelivery,
  body: z.string().default("").describe("The body as text, or in base64."),
  verify: z
    .boolean()
    .default(true)
    .describe("False explains what it would become if its sender were believed."),
  events: definitionsSchema
    .optional()
    .describe("Definitions to be tried instead of the channel's own; nothing is changed."),
});

const explanationSchema = z
  .object({
    verification: z
      .object({
        result: z.enum(["verified", "refused", "skipped"]),
        message: z.string().nullable().meta({ description: "Why it is refused. Its sender is not told." }),
      })
      .meta({ description: "A delivery that is refused is answered 401 and goes no further." }),
    received: z.int().meta({ description: "Items in all; no more than the first are shown." }),
    items: z.array(explainedItemSchema),
  })
  .meta({
    id: "Explanation",
    description: "What a delivery would become, step by step. Nothing is published.",
  });

/** Says what a delivery would become. */
export const explanations: Resource<ExplainDeps> = {
  path: "/apps/:appId/channels/:channelId/explain",
  tag: "Channels",
  routes: ({ db, keyring, explain, findCompiledChannel, schemas, clock, stopping }) => [
    defineRoute(
      {
        method: "post",
        path: "/",
        operation: "explainDelivery",
        summary: "Explain what a delivery would become",
        description:
          "Verification, items, what each path yields, each schema's finding, topics, ids, whether they are known: as a delivery would go, with nothing published, kept or counted. With `events` other definitions are tried.",
        params: channelParams,
        body: explainSchema,
        answer: explanationSchema,
      },
      async ({ caller, params, body }) => {
        const { number } = await getChannel(db, keyring, appScopeOf(caller, params), params.channelId);
        const stored = await findCompiledChannel(number);
        if (!stored) throw notFound("channel");
        const tried = body.events && (await tryDefinitions(schemas, stored, body.events, stopping));
        if (tried?.ok === false) throw invalidParameters(tried.error);
        const channel = tried?.value ?? stored;
        const request = requestOf(body, clock());
        if (request.body.length > channel.limits.maxBodyBytes) {
          throw invalidParameters([{ path: "body", message: "is larger than the channel takes" }]);
        }
        const verified = body.verify ? await channel.sender.verify(request) : undefined;
        if (verified?.ok === false) {
          const verification = { result: "refused", message: verified.error.message } as const;
          return { verification, received: 0, items: [] };
        }
        const delivery: VerifiedDelivery = verified?.value ?? believed(channel, request);
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
    ),
  ],
};
