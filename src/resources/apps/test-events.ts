import { z } from "zod";
import { channelName } from "../../data/accounts/audit-entry.ts";
import { DELIVERY_METHODS, isQueryMethod } from "../../event/methods.ts";
import { conflict, invalidParameters } from "../../http/errors.ts";
import type { Shown } from "../../http/fields.ts";
import type { CompiledChannel } from "../../ingest/compile-channel.ts";
import { explainedItemSchema, renderFailure } from "../events/explained-item.ts";
import type { Deps } from "../kit/deps.ts";
import { eventReceipts } from "../kit/receipts.ts";
import { recordUse } from "../kit/record-use.ts";
import type { Resource } from "../kit/resource.ts";
import { defineRoute } from "../kit/route.ts";
import { channelParams, getChannel, getCompiledChannel } from "./app-channel.ts";
import { appScopeOf, requireOwnApp, SYSTEM_APP_CONFLICT } from "./app-scope.ts";
import { givenDelivery, skipVerification, toRawRequest } from "./given-delivery.ts";

const testSchema = z.strictObject({
  method: z
    .enum(DELIVERY_METHODS)
    .describe("HTTP method of the delivery. GET and DELETE have no body.")
    .default("POST"),
  ...givenDelivery,
  body: z
    .string()
    .min(1)
    .max(524_288)
    .optional()
    .describe(
      "Body of the delivery, encoded as `bodyEncoding` states. Default: the sample of the channel's preset, or a minimal delivery of its kind. Required for channels that fetch their events.",
    ),
});

const { failures, item } = explainedItemSchema.shape;

const testedSchema = z
  .object({
    received: z.int().meta({ description: "Number of items in the delivery." }),
    ignored: z.int().meta({
      description:
        "Number of items that no definition published because of its `when`, or that matched none with `onNoMatch: ignore`.",
    }),
    events: z
      .array(eventReceipts.element.omit({ status: true }))
      .meta({ description: "The published events." }),
    failures: z.array(failures.element.extend({ item })).meta({
      description: "Reasons why the other items were not published. These items are not stored.",
    }),
  })
  .meta({ id: "TestedChannel", description: "Result of a test delivery." });

export type TestedChannel = Shown<z.output<typeof testedSchema>>;

export const testEvents: Resource = {
  tag: "Channels",
  params: channelParams,
  routes: (deps) => [
    defineRoute({
      at: "POST /apps/:appId/channels/:channelId/test",
      operation: "testChannel",
      summary: "Send a test event",
      description:
        "Publishes the delivery in the body, or by default the sample of the channel's preset. The sender is not verified. The published events have the extension `inlettest`. Handlers only receive test events with the setting `testEvents`. Other readers and the event stream always receive them. Event ids are neither checked nor remembered, so each call publishes the events again. Failed items are returned, not quarantined.",
      permission: "channels.write",
      body: testSchema,
      answer: testedSchema,
      conflict: `the channel is paused; or ${SYSTEM_APP_CONFLICT}`,
      async handle({ caller, params, body, c }) {
        const { db, keyring, clock } = deps;
        const scope = appScopeOf(caller, params);
        const row = await getChannel(db, keyring, scope, params.channelId);
        await requireOwnApp(db, scope);
        const channel = await getCompiledChannel(deps, row.number);
        if (channel.state === "paused") throw conflict("The channel is paused.");
        const delivery = skipVerification(
          channel,
          toRawRequest(completeDelivery(deps, channel, body), clock()),
        );
        if (delivery.body.length > channel.limits.maxBodyBytes)
          throw invalidParameters([
            {
              path: "body",
              message: `must not be larger than the channel's limits.maxBodyBytes (${channel.limits.maxBodyBytes})`,
            },
          ]);
        await recordUse(deps, caller, "test", "channel", [channelName(row)]);
        const tested = await deps.publishTest(channel, delivery, { signal: c.req.raw.signal });
        return {
          received: tested.received,
          ignored: tested.ignored,
          events: tested.events.map(({ status: _, ...event }) => event),
          failures: tested.failures.map((failure) => ({ ...renderFailure(failure), item: failure.item })),
        };
      },
    }),
  ],
};

/**
 * Adds a body to the delivery in the request if it has none: the preset's sample, or a minimal body for the channel kind.
 * @throws ApiError 400 if neither exists
 */
function completeDelivery(
  { presets, channelKinds }: Deps,
  { verification, identity, rules }: CompiledChannel,
  { body, ...others }: z.output<typeof testSchema>,
) {
  const { method } = others;
  if (body !== undefined || isQueryMethod(method)) return { ...others, body: body ?? "" };
  const sample = presets.get(verification?.preset ?? "")?.sample;
  if (sample !== undefined)
    return {
      method,
      headers: sample.headers,
      body: sample.body,
      bodyEncoding: "utf-8" as const,
      query: new URLSearchParams(sample.query).toString(),
    };
  const minimal = channelKinds
    .get(identity.kind)
    ?.minimalDelivery?.(rules.definitions.map(({ type }) => type));
  if (minimal === undefined)
    throw invalidParameters([
      { path: "body", message: "is required, because the channel fetches its events and has no sample" },
    ]);
  return { method, ...minimal, query: "", bodyEncoding: "utf-8" as const };
}
