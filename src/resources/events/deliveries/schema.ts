import { z } from "zod";
import {
  DELIVERY_STATUSES,
  type DeliveryRecord,
  VERIFICATION_RESULTS,
  type WholeDeliveryRecord,
} from "../../../event/delivery-record.ts";
import { QUARANTINE_REASONS } from "../../../event/outcome.ts";
import { id, type Shown, timeInput, timestamp } from "../../../http/fields.ts";
import { pageQuery } from "../../../http/page.ts";
import { formatTimestamp } from "../../../lib/clock.ts";
import { explainedItemSchema, renderDefinition, renderFailure } from "../explained-item.ts";

export const filters = {
  channel: z.string().min(1).max(64).optional().describe("The id or uid of a channel: its deliveries alone."),
  status: z.enum(DELIVERY_STATUSES).optional(),
  /** Arrival: at or after `from`, before `to`. */
  from: timeInput.optional(),
  to: timeInput.optional(),
  requestId: z
    .string()
    .min(1)
    .max(128)
    .optional()
    .describe("As in the header X-Request-Id of the answer that its sender got."),
  eventId: z
    .string()
    .min(1)
    .max(512)
    .optional()
    .describe("The id, or the entry, of an event that came of it."),
} as const;

export const listQuerySchema = z.object({
  ...filters,
  order: z.enum(["oldest", "newest"]).default("oldest").describe("Which come first."),
  ...pageQuery,
});
export type Filters = Pick<z.output<typeof listQuerySchema>, keyof typeof filters>;

const valuesSchema = z.record(z.string(), z.union([z.string(), z.array(z.string())]));

const summaryFields = {
  id: id("del"),
  appId: id("app"),
  channelUid: z.string(),
  requestId: z
    .string()
    .nullable()
    .meta({ description: "As in the header X-Request-Id of the answer; null: it was fetched." }),
  clientAddress: z.string().nullable().meta({ example: "192.0.2.1" }),
  method: z.string(),
  receivedAt: timestamp,
  durationMs: z.int().meta({ description: "Until it was answered." }),
  status: z.enum(DELIVERY_STATUSES).meta({
    description:
      "`quarantined`: an item of it at least. `refused`: answered 4xx. `failed`: 5xx, what became of it is not certain. `handshake`: it was no delivery. `empty`: it had no item.",
  }),
  httpStatus: z.int().nullable().meta({ description: "Of the answer; null: it was fetched.", example: 200 }),
  reason: z.string().nullable().meta({ description: "Why it was refused, or failed." }),
  verification: z.object({
    result: z.enum(VERIFICATION_RESULTS).meta({
      description:
        "`unproved`: accepted only because the channel tries its settings out (`shadow`). `none`: the channel verifies nobody. `fetched`: Inlet asked for it. `unknown`: nobody looked.",
    }),
    scheme: z.string().meta({ example: "hmac" }),
    preset: z.string().nullable(),
    deliveryId: z.string().nullable().meta({ description: "An id that the signature covers." }),
  }),
  received: z.int().meta({ description: "Its items." }),
  published: z.int().meta({ description: "Events." }),
  duplicates: z.int(),
  quarantined: z.int(),
  events: z
    .array(
      z.object({
        id: z.string(),
        type: z.string(),
        topic: z.string(),
        entryId: z.string(),
        status: z.enum(["published", "duplicate"]),
      }),
    )
    .meta({ description: "The first hundred." }),
  quarantine: z
    .array(z.object({ id: z.string(), reason: z.enum(QUARANTINE_REASONS), path: z.string().optional() }))
    .meta({ description: "The first hundred." }),
  bodyBytes: z
    .int()
    .nullable()
    .meta({ description: "Of the body as it was received; null where it was refused." }),
};

export const deliverySchema = z
  .object(summaryFields)
  .meta({ id: "Delivery", description: "One delivery as it came, and what came of it." });

const { item, failures, definitions, closest } = explainedItemSchema.shape;

export const wholeDeliverySchema = z
  .object({
    ...summaryFields,
    headers: valuesSchema,
    query: valuesSchema,
    bodyBase64: z.string().nullable().meta({
      description: "The body's bytes; null where it was refused, or is larger than 128 KiB.",
    }),
    items: z.array(z.object({ item, failures, definitions, closest })).meta({
      description:
        "What each path yielded of its first items, by the definitions of then; empty where the body is not kept.",
    }),
    explanation: z.array(explainedItemSchema).meta({
      description: "What it would become by today's definitions; empty where the body is not kept.",
    }),
  })
  .meta({ id: "WholeDelivery", description: "The record with the delivery itself, without secrets." });

type Summary = Shown<z.output<typeof deliverySchema>>;
type Whole = Shown<z.output<typeof wholeDeliverySchema>>;

export function renderDelivery(record: DeliveryRecord): Summary {
  const { id, appId, channelUid, requestId, clientAddress, method, durationMs, status } = record;
  const { httpStatus, reason, verification, outcome, bodyBytes } = record;
  return {
    id,
    appId,
    channelUid,
    requestId,
    clientAddress,
    method,
    receivedAt: formatTimestamp(record.receivedAtMs),
    durationMs,
    status,
    httpStatus,
    reason,
    verification,
    ...outcome,
    bodyBytes,
  };
}

export const renderWholeDelivery = (
  { record, items, body }: WholeDeliveryRecord,
  explanation: Whole["explanation"],
): Whole => ({
  ...renderDelivery(record),
  headers: record.headers,
  query: record.query,
  bodyBase64: body?.toString("base64") ?? null,
  items: items.map(({ item, failures, definitions, closest }) => ({
    item,
    closest,
    failures: failures.map(renderFailure),
    definitions: definitions.map(renderDefinition),
  })),
  explanation,
});
