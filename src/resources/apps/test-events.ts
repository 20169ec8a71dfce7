import { z } from "zod";
import type { ChannelKinds } from "../../channels/kind.ts";
import { recordAccess } from "../../data/accounts/audit.ts";
import { channelName } from "../../data/accounts/audit-entry.ts";
import type { Queryable } from "../../data/database.ts";
import type { Keyring } from "../../data/keyring/keyring.ts";
import { conflict, invalidParameters, notFound } from "../../http/errors.ts";
import type { CompiledChannel } from "../../ingest/compiled-channel.ts";
import type { PublishTest } from "../../ingest/write.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Presets } from "../../verify/presets.ts";
import { explainedItemSchema, renderFailure } from "../events/explained-item.ts";
import type { Resource } from "../kit/resource.ts";
import { defineRoute } from "../kit/route.ts";
import { channelParams, getChannel } from "./app-channel.ts";
import { appScopeOf, requireOwnApp, SYSTEM_APP_CONFLICT } from "./app-scope.ts";
import { givenDelivery, skipVerification, toRawRequest } from "./given-delivery.ts";

export interface TestEventsDeps {
  readonly db: Queryable;
  readonly keyring: Keyring;
  readonly channelKinds: ChannelKinds;
  readonly presets: Presets;
  readonly publishTest: PublishTest;
  /** `undefined` if the channel was deleted. @throws UnavailableError */
  readonly findCompiledChannel: (channelNumber: number) => Promise<CompiledChannel | undefined>;
  readonly clock: Clock;
}

const testSchema = z.strictObject({
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
    events: z
      .array(z.object({ id: z.string(), type: z.string(), topic: z.string(), entryId: z.string() }))
      .meta({ description: "The published events." }),
    failures: z.array(failures.element.extend({ item })).meta({
      description: "Reasons why the other items were not published. These items are not stored.",
    }),
  })
  .meta({ id: "TestedChannel", description: "Result of a test delivery." });

export const testEvents: Resource<TestEventsDeps> = {
  path: "/apps/:appId/channels/:channelId/test",
  tag: "Channels",
  routes: (deps) => [
    defineRoute(
      {
        method: "post",
        path: "/",
        operation: "testChannel",
        summary: "Send a test event",
        description:
          "Publishes the delivery in the body, or by default the sample of the channel's preset. The sender is not verified. The published events have the extension `inlettest`. Handlers only receive test events with the setting `testEvents`. Other readers and the event stream always receive them. Event ids are neither checked nor remembered, so each call publishes the events again. Failed items are returned, not quarantined.",
        permission: "channels.write",
        params: channelParams,
        body: testSchema,
        answer: testedSchema,
        conflict: `the channel is paused; or ${SYSTEM_APP_CONFLICT}`,
      },
      async ({ caller, params, body, c }) => {
        const { db, keyring, clock } = deps;
        const scope = appScopeOf(caller, params);
        const row = await getChannel(db, keyring, scope, params.channelId);
        await requireOwnApp(db, scope);
        const channel = await deps.findCompiledChannel(row.number);
        if (!channel) throw notFound("channel");
        if (channel.state === "paused") throw conflict("The channel is paused.");
        const delivery = skipVerification(
          channel,
          toRawRequest({ method: "POST", ...completeDelivery(deps, channel, body) }, clock()),
        );
        if (delivery.body.length > channel.limits.maxBodyBytes)
          throw invalidParameters([
            {
              path: "body",
              message: `must not be larger than the channel's limits.maxBodyBytes (${channel.limits.maxBodyBytes})`,
            },
          ]);
        await recordAccess(
          db,
          caller,
          [{ action: "test", entity: "channel", id: channelName(row) }],
          clock(),
        );
        const tested = await deps.publishTest(channel, delivery, { signal: c.req.raw.signal });
        return {
          received: tested.received,
          events: tested.events.map(({ status: _, ...event }) => event),
          failures: tested.failures.map((failure) => ({ ...renderFailure(failure), item: failure.item })),
        };
      },
    ),
  ],
};

/**
 * Adds a body to the delivery in the request if it has none: the preset's sample, or a minimal body for the channel kind.
 * @throws ApiError 400 if neither exists
 */
function completeDelivery(
  { presets, channelKinds }: TestEventsDeps,
  { verification, identity, rules }: CompiledChannel,
  { body, ...others }: z.output<typeof testSchema>,
) {
  if (body !== undefined) return { ...others, body };
  const sample = presets.get(verification?.preset ?? "")?.sample;
  if (sample !== undefined)
    return {
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
  return { ...minimal, query: "", bodyEncoding: "utf-8" as const };
}
