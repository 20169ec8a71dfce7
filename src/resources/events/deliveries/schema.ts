import { z } from "zod";
import {
  DELIVERY_STATUSES,
  type DeliveryRecord,
  VERIFICATION_RESULTS,
  type WholeDeliveryRecord,
} from "../../../event/delivery-record.ts";
import { id, type Shown, timeInput, timestamp } from "../../../http/fields.ts";
import { newestQuery, pageQuery } from "../../../http/page.ts";
import { formatTimestamp } from "../../../lib/clock.ts";
import { placeFilters } from "../../apps/organization-channels.ts";
import { pickFields } from "../../kit/pick-fields.ts";
import { deliveryValues, eventReceipts, quarantineReceipts } from "../../kit/receipts.ts";
import { explainedItemSchema, renderDefinition, renderFailure } from "../explained-item.ts";

export const filters = {
  channel: z.string().min(1).max(64).optional().describe("Id or uid of a channel. Selects its deliveries."),
  status: z.enum(DELIVERY_STATUSES).optional(),
  from: timeInput.optional().describe("Selects deliveries received at or after this time."),
  to: timeInput.optional().describe("Selects deliveries received before this time."),
  requestId: z
    .string()
    .min(1)
    .max(128)
    .optional()
    .describe("Value of the X-Request-Id header in the response to the sender."),
  eventId: z
    .string()
    .min(1)
    .max(512)
    .optional()
    .describe("Id or entry id of an event. Selects the delivery that published it."),
} as const;

export const listQuerySchema = z.object({
  ...filters,
  order: z
    .enum(["oldest", "newest"])
    .default("oldest")
    .describe("Whether the oldest or the newest delivery comes first."),
  ...pageQuery,
});
const { channel: _, ...valueFilters } = filters;
export const newestDeliveriesQuery = z.object({ ...placeFilters, ...valueFilters, ...newestQuery });
export type NewestDeliveries = z.output<typeof newestDeliveriesQuery>;
export type Filters = Pick<z.output<typeof listQuerySchema>, keyof typeof filters>;

const TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736";

const summaryFields = {
  id: id("del"),
  appId: id("app"),
  channelUid: z.string(),
  requestId: z.string().nullable().meta({
    description: "Value of the X-Request-Id header in the response. Null if Inlet fetched the delivery.",
  }),
  traceId: z
    .string()
    .nullable()
    .meta({ description: "Id of the trace. Null if the delivery is not sampled.", example: TRACE_ID }),
  traceUrl: z
    .string()
    .nullable()
    .meta({
      description:
        "Address of the trace in your tracing tool. Null if the delivery is not sampled or `INLET_TRACE_URL` is not set.",
      example: `https://tempo.example.com/trace/${TRACE_ID}`,
    }),
  clientAddress: z.string().nullable().meta({ example: "192.0.2.1" }),
  method: z.string(),
  receivedAt: timestamp,
  durationMs: z.int().meta({ description: "Time from arrival to response, in milliseconds." }),
  status: z.enum(DELIVERY_STATUSES).meta({
    description:
      "`recovered`: the channel missed the delivery, and a poll found its events. `ignored`: no definition published an item, because of its `when` or of `onNoMatch: ignore`. `quarantined`: at least one item was quarantined. `refused`: rejected with a 4xx. `failed`: ended with a 5xx, and some events may have been published. `handshake`: a provider's check of the address, not a delivery. `empty`: the delivery had no items. `woke`: the delivery had no events, and has woken polling channels.",
  }),
  httpStatus: z
    .int()
    .nullable()
    .meta({ description: "HTTP status of the response. Null if Inlet fetched the delivery.", example: 200 }),
  reason: z.string().nullable().meta({ description: "Why the delivery was rejected or failed." }),
  verification: z.object({
    result: z.enum(VERIFICATION_RESULTS).meta({
      description:
        "`unproved`: verification failed, but the channel only tries it out (`shadow`). `none`: the channel does not verify senders. `fetched`: Inlet fetched the delivery itself. `unknown`: the delivery was rejected before verification.",
    }),
    scheme: z.string().meta({ example: "hmac" }),
    preset: z.string().nullable(),
    deliveryId: z
      .string()
      .nullable()
      .meta({ description: "The sender's id of the delivery, if the signature covers one." }),
  }),
  received: z.int().meta({ description: "Number of items." }),
  published: z.int().meta({ description: "Number of published events." }),
  duplicates: z.int(),
  ignored: z.int().meta({
    description:
      "Number of items that no definition published because of its `when`, or that matched none with `onNoMatch: ignore`.",
  }),
  quarantined: z.int(),
  woken: z.array(z.string()).meta({
    description: "Uids of the polling channels that the delivery has woken (`wakes` of its channel).",
  }),
  events: eventReceipts.meta({ description: "The first 100 events." }),
  quarantine: quarantineReceipts.meta({ description: "The first 100 quarantined items." }),
  bodyBytes: z
    .int()
    .nullable()
    .meta({ description: "Size of the body as received. Null if the delivery was rejected." }),
};

export const deliverySchema = z
  .object(summaryFields)
  .meta({ id: "Delivery", description: "A delivery with its result." });

const { item, failures, definitions, closest } = explainedItemSchema.shape;

export const wholeDeliverySchema = z
  .object({
    ...summaryFields,
    headers: deliveryValues,
    query: deliveryValues,
    bodyBase64: z.string().nullable().meta({
      description: "The body. Null if the delivery was rejected or the body is larger than 128 KiB.",
    }),
    items: z.array(z.object({ item, failures, definitions, closest })).meta({
      description:
        "The values that each path selected from the first items, with the definitions at the time. Empty if the body is not stored.",
    }),
    explanation: z.array(explainedItemSchema).meta({
      description: "The result with the channel's current definitions. Empty if the body is not stored.",
    }),
  })
  .meta({ id: "WholeDelivery", description: "A delivery with its headers and body, without secrets." });

export type Delivery = Shown<z.output<typeof deliverySchema>>;
export type WholeDelivery = Shown<z.output<typeof wholeDeliverySchema>>;

/** @param traceUrl address of a trace, with the placeholder `{traceId}` */
export const renderDelivery = (
  { traceId = null, ...record }: DeliveryRecord,
  traceUrl: string | undefined,
): Delivery => ({
  ...pickFields(summaryFields, record),
  traceId,
  traceUrl: traceId === null || traceUrl === undefined ? null : traceUrl.replaceAll("{traceId}", traceId),
  ignored: 0,
  ...record.outcome,
  woken: [...(record.outcome.woken ?? [])],
  receivedAt: formatTimestamp(record.receivedAtMs),
});

export const renderWholeDelivery = (
  { record, items, body }: WholeDeliveryRecord,
  explanation: WholeDelivery["explanation"],
  traceUrl: string | undefined,
): WholeDelivery => ({
  ...renderDelivery(record, traceUrl),
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
