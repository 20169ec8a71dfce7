import { z } from "zod";
import { DELIVERY_METHODS, isQueryMethod } from "../../../event/methods.ts";
import { QUARANTINE_REASONS } from "../../../event/outcome.ts";
import { conflict, invalidParameters } from "../../../http/errors.ts";
import { id, type Shown } from "../../../http/fields.ts";
import type { CompiledChannel } from "../../../ingest/compile-channel.ts";
import { freshenSample } from "../../../verify/sign/freshen-sample.ts";
import type { OutgoingRequest } from "../../../verify/sign/place.ts";
import { putRouteKey } from "../../../verify/sign/put-route-key.ts";
import type { Deps } from "../../kit/deps.ts";
import { pathId } from "../../kit/params.ts";
import { recordUse } from "../../kit/record-use.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { getCompiledChannel } from "../app-channel.ts";
import { givenDelivery, toRawRequest } from "../given-delivery.ts";
import { getIntake } from "../intake-scope.ts";
import { routeKey } from "./schema.ts";
import { signGiven } from "./sign-given.ts";

const testSchema = z.strictObject({
  routeKey: routeKey
    .optional()
    .describe("Route key of all items. Default: the one that the delivery has.")
    .meta({ example: "T0123ABCD" }),
  method: z.enum(DELIVERY_METHODS).describe("HTTP method of the delivery.").default("POST"),
  ...givenDelivery,
  body: z
    .string()
    .min(1)
    .max(524_288)
    .optional()
    .describe("Body of the delivery, encoded as `bodyEncoding` states. Default: the sample of the preset.")
    .meta({ example: '{"team_id":"T0123ABCD"}' }),
});

const testedSchema = z
  .object({
    verification: z.object({
      result: z.enum(["verified", "skipped"]).meta({
        description:
          "`verified`: the delivery was signed with a secret of the intake. `skipped`: the gateway cannot sign it, for example because only the provider has the private key.",
      }),
      message: z.string().nullable().meta({ description: "Why the gateway cannot sign the delivery." }),
    }),
    received: z.int().meta({ description: "Number of items." }),
    groups: z.array(
      z.object({
        routeKey: z.string().nullable(),
        items: z.int().meta({ description: "Number of items with this route key." }),
        result: z.enum(["routed", ...QUARANTINE_REASONS]).meta({
          description: "`routed`, or the reason for which the intake would hold the items.",
        }),
        detail: z.string().nullable(),
        appId: id("app").nullable().meta({ description: "The install that owns the route key." }),
        published: z.int().nullable().meta({
          description: "Number of published test events. Null if none were to be published; see `detail`.",
        }),
        failed: z.int().nullable().meta({
          description: "Number of items that the install's channel could not publish. They are not stored.",
        }),
      }),
    ),
  })
  .meta({ id: "TestedIntake", description: "Result of a test delivery to an intake." });

export type TestedIntake = Shown<z.output<typeof testedSchema>>;

export const intakeTests: Resource = {
  tag: "Blueprints",
  params: { blueprintId: pathId("bp", "blueprint") },
  routes: (deps) => [
    defineRoute({
      at: "POST /blueprints/:blueprintId/intake/test",
      operation: "testIntake",
      summary: "Send a test event through an intake",
      description:
        "Signs a delivery with the intake's secret, verifies it and routes it like a received one. By default, the delivery is the sample of the preset. Its events have the extension `inlettest`, which handlers skip by default, and are published only to apps of your organization. For apps of other organizations, the response says only where the items would go. The intake stores no item and remembers no signed bytes.",
      body: testSchema,
      answer: testedSchema,
      missing: "the organization has no such blueprint, or the blueprint has no intake",
      conflict: "the intake is paused",
      async handle({ caller, params: { blueprintId }, body, c }) {
        const { intake } = await getIntake(deps.db, caller, blueprintId);
        const channel = await getCompiledChannel(deps, intake.number);
        const { routes, state, limits } = channel;
        if (routes === undefined) throw new Error("an intake has no routing");
        if (state === "paused") throw conflict("The intake is paused.");
        const request = composeRequest(deps, channel, body);
        if (request.body.length > limits.maxBodyBytes) {
          const message = `must not be larger than the intake's limits.maxBodyBytes (${limits.maxBodyBytes})`;
          throw invalidParameters([{ path: "body", message }]);
        }
        const { delivery, skippedBecause } = await signGiven(deps, intake, channel, request);
        await recordUse(deps, caller, "test", "blueprint", [blueprintId]);
        const { organizationId } = caller;
        const options = { organizationId, signal: c.req.raw.signal };
        const tested = await deps.testRouting(channel, routes, delivery, options);
        const result = skippedBecause === null ? ("verified" as const) : ("skipped" as const);
        return { verification: { result, message: skippedBecause }, ...tested };
      },
    }),
  ],
};

/** Builds the request that the provider would send, without its signature. @throws ApiError 400 if it has no body or no place for the key */
function composeRequest(
  { presets, clock }: Pick<Deps, "presets" | "clock">,
  { verification, config, routes }: CompiledChannel,
  { routeKey: key, body, ...given }: z.output<typeof testSchema>,
): OutgoingRequest {
  const preset = presets.get(verification?.preset ?? "");
  const isOwn = body !== undefined || isQueryMethod(given.method);
  if (!isOwn && preset === undefined)
    throw invalidParameters([{ path: "body", message: "is required, because the intake has no preset" }]);
  const { arrivedAtMs: _, ...raw } = toRawRequest({ ...given, body: body ?? "" }, clock());
  const json = { "content-type": "application/json" };
  const givenHeaders = toTexts(raw.headers);
  const query = given.query || new URLSearchParams(preset?.sample.query).toString();
  const sample: OutgoingRequest | undefined =
    isOwn || preset === undefined
      ? undefined
      : {
          method: given.method,
          headers: { ...json, ...preset.sample.headers, ...givenHeaders },
          target: `/?${query}`,
          body: Buffer.from(preset.sample.body),
        };
  const fresh = sample && preset && freshenSample(sample, preset, { type: undefined, random: Math.random });
  const request = fresh?.ok ? fresh.value : (sample ?? { ...raw, headers: { ...json, ...givenHeaders } });
  if (key === undefined) return request;
  const routeBy = routes?.paths.map(({ text }) => text) ?? [];
  const put = putRouteKey(request, { routeBy, itemsPath: config.itemsPath }, key);
  if (put.ok) return put.value;
  throw invalidParameters([{ path: "routeKey", message: `cannot be used: ${put.error}` }]);
}

/** Signed requests have one text per header. */
const toTexts = (headers: Readonly<Record<string, string | readonly string[] | undefined>>) =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      typeof value === "string" ? value : (value ?? []).join(", "),
    ]),
  );
