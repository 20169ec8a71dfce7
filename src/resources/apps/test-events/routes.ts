import { z } from "zod";
import type { ChannelKinds } from "../../../channels/kind.ts";
import { recordAccess } from "../../../data/accounts/audit.ts";
import { channelName } from "../../../data/accounts/audit-entry.ts";
import type { Queryable } from "../../../data/database.ts";
import type { Keyring } from "../../../data/keyring/keyring.ts";
import { conflict, invalidParameters, notFound } from "../../../http/problem.ts";
import type { CompiledChannel } from "../../../ingest/compiled-channel.ts";
import type { PublishTest } from "../../../ingest/write.ts";
import type { Clock } from "../../../lib/clock.ts";
import type { Presets } from "../../../verify/presets.ts";
import { explainedItemSchema, renderFailure } from "../../events/explained-item.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { channelParams, getChannel } from "../app-channel.ts";
import { appScopeOf, IS_SYSTEM, requireOwnApp } from "../app-scope.ts";
import { believed, givenDelivery, requestOf } from "../given-delivery.ts";

export interface TestEventsDeps {
  readonly db: Queryable;
  readonly keyring: Keyring;
  readonly channelKinds: ChannelKinds;
  readonly presets: Presets;
  readonly publishTest: PublishTest;
  /** The channel in force; undefined where it was deleted. @throws UnavailableError */
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
      "The body as text, or in base64. Absent: the sample of the channel's preset, else the least delivery of its kind; a source has none.",
    ),
});

const { failures, item } = explainedItemSchema.shape;

const testedSchema = z
  .object({
    received: z.int().meta({ description: "Items." }),
    events: z
      .array(z.object({ id: z.string(), type: z.string(), topic: z.string(), entryId: z.string() }))
      .meta({ description: "What was published." }),
    failures: z
      .array(failures.element.extend({ item }))
      .meta({ description: "Why the others were not. Nothing of them is kept." }),
  })
  .meta({ id: "TestedChannel", description: "What a test delivery became." });

/** Tries a channel out with a delivery that nobody sent. */
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
          "Publishes the sample of the channel's preset, or the delivery in the body, as if its sender had been verified. Its events have the extension `inlettest`: handlers skip them unless they ask (`testEvents`), other readers and the stream see them. Each call publishes anew: their ids are neither looked up nor remembered, and what fails is answered and not kept.",
        permission: "channels.write",
        params: channelParams,
        body: testSchema,
        answer: testedSchema,
        conflict: `the channel is paused; or ${IS_SYSTEM}`,
      },
      async ({ caller, params, body, c }) => {
        const { db, keyring, clock } = deps;
        const scope = appScopeOf(caller, params);
        const row = await getChannel(db, keyring, scope, params.channelId);
        await requireOwnApp(db, scope);
        const channel = await deps.findCompiledChannel(row.number);
        if (!channel) throw notFound("channel");
        if (channel.state === "paused") throw conflict("The channel is paused.");
        const delivery = believed(
          channel,
          requestOf({ method: "POST", ...given(deps, channel, body) }, clock()),
        );
        if (delivery.body.length > channel.limits.maxBodyBytes)
          throw invalidParameters([{ path: "body", message: "is larger than the channel takes" }]);
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

/** What was given; else the sample of the preset, else that of the kind. @throws ApiError 400 where there is neither */
function given(
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
  const least = channelKinds.get(identity.kind)?.minimalDelivery?.(rules.definitions.map(({ type }) => type));
  if (least === undefined)
    throw invalidParameters([{ path: "body", message: "is needed: a source has no sample" }]);
  return { ...least, query: "", bodyEncoding: "utf-8" as const };
}
