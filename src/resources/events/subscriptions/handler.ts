import { randomBytes } from "node:crypto";
import { z } from "zod";
import type { Trx } from "../../../data/database.ts";
import type { HandlerSettings } from "../../../event/handler.ts";
import { invalidParameters, notFound } from "../../../http/problem.ts";

/** Standard Webhooks, "Symmetric": 24 to 64 bytes. */
const SECRET = /^whsec_(?:[A-Za-z0-9+/]{4}){8,21}(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})?$/;
const MADE_SECRET_BYTES = 32;

/** Where a subscription's events are to be sent. */
export const handlerSchema = z.strictObject({
  url: z
    .url({ protocol: /^https?$/, error: "must be an http or https URL" })
    .max(2_048)
    .refine((url) => URL.parse(url)?.username === "", "must not hold credentials: use a connection")
    .describe("Each event is POSTed there as a CloudEvent in binary mode; 2xx acknowledges it."),
  secret: z
    .string()
    .regex(SECRET, "must be whsec_ and the base64 of 24 to 64 bytes")
    .optional()
    .describe("What deliveries are signed with, as Standard Webhooks says; made where it is absent."),
  connectionId: z.string().min(1).nullable().default(null).describe("Credentials that the calls carry."),
  timeoutMs: z.int().min(100).max(60_000).default(10_000).describe("How long one attempt may take."),
  concurrency: z.int().min(1).max(64).default(8).describe("Attempts at once, by each gateway."),
  ordered: z
    .boolean()
    .default(false)
    .describe(
      "One event of a topic at a time, in order: one that fails holds its topic back, for about an hour at most.",
    ),
  testEvents: z
    .boolean()
    .default(false)
    .describe("Whether it is sent events that somebody published to try a channel out (`inlettest`)."),
});
export type HandlerInput = z.output<typeof handlerSchema>;

/** A handler as the API answers it. */
export const shownHandlerSchema = z
  .object({
    url: z.string(),
    connectionId: z.string().nullable(),
    timeoutMs: z.int(),
    concurrency: z.int(),
    ordered: z.boolean(),
    testEvents: z.boolean(),
    secret: z
      .string()
      .nullable()
      .meta({ description: "Shown once, by the call that made it; null ever after." }),
  })
  .meta({ id: "Handler", description: "Where a subscription's events are sent." });

export const makeHandlerSecret = (): string => `whsec_${randomBytes(MADE_SECRET_BYTES).toString("base64")}`;

export const settingsOf = ({ secret: _, ...settings }: HandlerInput): HandlerSettings => settings;

/** A connection as it stays until the transaction ends. @throws ApiError 404 */
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

/** @throws ApiError 404 for a connection that is not there, 400 where it may not go to the handler's origin. */
export async function requireHandlerConnection(
  trx: Trx,
  organizationId: string,
  { connectionId, url }: HandlerInput,
): Promise<void> {
  if (connectionId === null) return;
  const { allowedOrigins } = await keepConnection(trx, organizationId, connectionId);
  const { origin } = new URL(url);
  if (allowedOrigins.includes(origin)) return;
  const message = `${origin} is none of the connection's allowed origins`;
  throw invalidParameters([{ path: "handler.connectionId", message }]);
}
