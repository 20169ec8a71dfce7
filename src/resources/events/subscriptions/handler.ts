import { randomBytes } from "node:crypto";
import { z } from "zod";
import type { Trx } from "../../../data/database.ts";
import type { HandlerSettings } from "../../../event/handler.ts";
import { isSigningSecret } from "../../../event/handler-request.ts";
import { invalidParameters, notFound } from "../../../http/errors.ts";
import { ALLOW_PRIVATE } from "../../../net/name-blocked.ts";
import type { Deps } from "../../kit/deps.ts";

const MADE_SECRET_BYTES = 32;

const batchSchema = z.strictObject({
  maxEvents: z.int().min(1).max(1_000).default(100).describe("Maximum number of events in a request."),
  maxBytes: z
    .int()
    .min(1_024)
    .max(16 * 1024 * 1024)
    .default(1024 * 1024)
    .describe("Maximum size of a request's body in bytes. A larger event is sent alone."),
  maxWaitMs: z
    .int()
    .min(0)
    .max(60_000)
    .default(1_000)
    .describe("Maximum time that an event waits for others, in milliseconds."),
});

const orderedSchema = z.union([z.boolean(), z.literal("key")], { error: 'must be true, false or "key"' });

export const handlerSchema = z.strictObject({
  url: z
    .url({ protocol: /^https?$/, error: "must be an http or https URL" })
    .max(2_048)
    .refine((url) => URL.parse(url)?.username === "", "must not contain credentials; use a connection")
    .describe(
      "URL to which each event is sent with POST, as a CloudEvent in binary mode. A 2xx response acknowledges it.",
    ),
  secret: z
    .string()
    .refine(isSigningSecret, "must be whsec_ followed by the base64 of 24 to 64 bytes")
    .meta({ pattern: "^whsec_[A-Za-z0-9+/]{32,86}={0,2}$" })
    .optional()
    .describe("Secret for signing requests according to Standard Webhooks. Generated if omitted."),
  connectionId: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe("Id of a connection whose credentials the requests use."),
  timeoutMs: z
    .int()
    .min(100)
    .max(60_000)
    .default(10_000)
    .describe("Maximum duration of an attempt, in milliseconds."),
  concurrency: z
    .int()
    .min(1)
    .max(64)
    .default(8)
    .describe("Maximum number of concurrent attempts per gateway."),
  ordered: orderedSchema
    .default(false)
    .describe(
      'Whether to send events one at a time, in order: `true` those of a topic, `"key"` those of a topic with the same `partitionkey`. A failing event delays its topic or key, for about an hour at most.',
    ),
  batch: batchSchema
    .optional()
    .describe(
      "Sends several events in one request, as a CloudEvents batch (`application/cloudevents-batch+json`). A 2xx response acknowledges all of them, except those that a JSON response lists in `failed` by `{source, id}`. Omitted: each event has its own request.",
    ),
  testEvents: z
    .boolean()
    .default(false)
    .describe("Whether to also send test events (those with the extension `inlettest`)."),
});
export type HandlerInput = z.output<typeof handlerSchema>;

/** Handler as returned by the API. The secret is null, except in the response to the request that generated it. */
export const shownHandlerSchema = z
  .object({
    url: z.string(),
    connectionId: z.string().nullable(),
    timeoutMs: z.int(),
    concurrency: z.int(),
    ordered: orderedSchema,
    batch: batchSchema.nullable().meta({
      description:
        "Limits of the requests if they have several events. Null if each event has its own request.",
    }),
    testEvents: z.boolean(),
    secret: z
      .string()
      .nullable()
      .meta({ description: "Returned only once, by the request that generated it. Null afterwards." }),
  })
  .meta({ id: "Handler", description: "The HTTP endpoint to which a subscription sends events." });

export const makeHandlerSecret = (): string => `whsec_${randomBytes(MADE_SECRET_BYTES).toString("base64")}`;

export const settingsOf = ({ secret: _, ...settings }: HandlerInput): HandlerSettings => settings;

/** Checks that requests may reach the handler now. @throws ApiError 400 for a private address that the gateway does not allow */
export async function requireReachable({ outbound }: Deps, { url }: HandlerInput): Promise<void> {
  const address = await outbound.findBlockedAddress(url);
  if (address === undefined) return;
  const { origin } = new URL(url);
  const message = `must have a public address, but ${origin} leads to the private address ${address}. ${ALLOW_PRIVATE}`;
  throw invalidParameters([{ path: "handler.url", message }]);
}

/**
 * Checks the `when` of a new subscription.
 *
 * @throws ApiError 400 if it does not compile, or if the subscription has no handler
 * @throws UnavailableError if the compiler is temporarily unavailable
 */
export async function requireFilter(
  { schemas }: Deps,
  organizationId: string,
  {
    handler,
    when,
  }: { readonly handler?: object | null | undefined; readonly when?: HandlerSettings["when"] },
): Promise<void> {
  if (when === undefined) return;
  if (handler == null) {
    const message =
      "must only be set with a handler; readers use the option `when` of inlet-consumer, or filter events themselves";
    throw invalidParameters([{ path: "when", message }]);
  }
  const { signal } = new AbortController();
  const findings = await schemas.check(when, { lane: organizationId, signal });
  if (findings.length > 0)
    throw invalidParameters(findings.map(({ path, message }) => ({ path: `when${path}`, message })));
}

/** Reads the connection and prevents its deletion until the transaction ends. @throws ApiError 404 if it does not exist */
export async function keepConnection(trx: Trx, organizationId: string, id: string) {
  const connection = await trx
    .selectFrom("connections")
    .select("allowedOrigins")
    .where((eb) => eb.and({ id, organizationId }))
    .forKeyShare()
    .executeTakeFirst();
  if (!connection) throw notFound("connection");
  return connection;
}

/**
 * Checks that the handler can use its connection.
 * @throws ApiError 404 if the connection does not exist; 400 if it does not allow the handler's origin
 */
export async function requireHandlerConnection(
  trx: Trx,
  organizationId: string,
  { connectionId, url }: HandlerInput,
): Promise<void> {
  if (connectionId === null) return;
  const { allowedOrigins } = await keepConnection(trx, organizationId, connectionId);
  const { origin } = new URL(url);
  if (allowedOrigins.includes(origin)) return;
  const message = `does not allow ${origin}; add it to the connection's allowedOrigins or use another connection`;
  throw invalidParameters([{ path: "handler.connectionId", message }]);
}
