import { z } from "zod";
import type { QuarantinedItem, QuarantineRecord } from "../../../bus/quarantine/quarantine-record.ts";
import { definitionsSchema } from "../../../event/definition.ts";
import type { IngestResult } from "../../../event/ingest.ts";
import { QUARANTINE_REASONS } from "../../../event/outcome.ts";
import { id, type Shown, timeInput, timestamp } from "../../../http/fields.ts";
import { newestQuery, pageQuery } from "../../../http/page.ts";
import { formatTimestamp } from "../../../lib/clock.ts";
import type { Redact } from "../../../lib/secrets/redact.ts";
import { maskSecretValues } from "../../../verify/hidden-values.ts";
import { placeFilters } from "../../apps/organization-channels.ts";
import { pickFields } from "../../kit/pick-fields.ts";
import { deliveryValues, eventReceipts, quarantineReceipts } from "../../kit/receipts.ts";
import { explainedItemSchema } from "../explained-item.ts";

export const filters = {
  channelId: z.string().optional().describe("Id or uid of a channel. Selects its items."),
  reason: z.enum(QUARANTINE_REASONS).optional().describe("Selects items with this reason."),
  from: timeInput.optional().describe("Selects items that first arrived at or after this time."),
  to: timeInput.optional().describe("Selects items that first arrived before this time."),
} as const;

export type Filters = z.output<z.ZodObject<typeof filters>>;

export const listQuerySchema = z.object({ ...filters, ...pageQuery });

const { channelId: _, ...valueFilters } = filters;
export const newestItemsQuery = z.object({ ...placeFilters, ...valueFilters, ...newestQuery });

export const redriveSchema = z.strictObject({ asNewId: z.boolean().default(false) });

export const redriveManySchema = z.strictObject({
  ...filters,
  limit: z.int().min(1).max(200).default(50),
});

export const previewSchema = z.strictObject({
  ...filters,
  channelId: z.string().describe("Id or uid of the channel whose items are previewed."),
  events: definitionsSchema
    .optional()
    .describe("Event definitions to try instead of the channel's own. The channel is not changed."),
  limit: z.int().min(1).max(200).default(50),
});

export const previewResultSchema = z
  .object({
    matched: z.int().meta({ description: "Number of items that match the filters." }),
    released: z.int().meta({ description: "Number of previewed items that would leave quarantine." }),
    items: z.array(
      z.object({
        id: id("qr"),
        reason: z.enum(QUARANTINE_REASONS).meta({ description: "Current reason for the quarantine." }),
        isReleased: z.boolean().meta({ description: "Whether a redrive would release the item." }),
        explanation: z.array(explainedItemSchema),
      }),
    ),
  })
  .meta({
    id: "QuarantinePreview",
    description: "Result that a redrive would have. A preview publishes no events.",
  });

const recordFields = {
  id: id("qr"),
  appId: id("app"),
  channelUid: z.string(),
  reason: z.enum(QUARANTINE_REASONS),
  path: z.string().nullable().meta({
    description: "Setting of the definition, or JSON Pointer into the data, to which the reason refers.",
  }),
  detail: z.string(),
  item: z
    .int()
    .nullable()
    .meta({ description: "Index of the item in its delivery, from 0. Null for the delivery as a whole." }),
  definitions: z.array(z.string()).meta({
    description:
      "Types of the definitions that failed. If empty, a redrive tries all current definitions of the channel.",
  }),
  count: z.int().meta({ description: "Number of times that the item has arrived." }),
  firstAt: timestamp,
  lastAt: timestamp,
};

export const recordSchema = z
  .object(recordFields)
  .meta({ id: "QuarantineRecord", description: "An item that could not become an event, with the reason." });
export type RecordEntity = Shown<z.output<typeof recordSchema>>;

export const itemSchema = z
  .object({
    ...recordFields,
    arrivedAt: timestamp,
    deliveryId: z.string().nullable(),
    method: z.string(),
    headers: deliveryValues,
    query: deliveryValues,
    body: z.string(),
    bodyEncoding: z.enum(["utf-8", "base64"]),
    explanation: z.array(explainedItemSchema).meta({
      description:
        "Result with the channel's current definitions, including the closest one. Empty if the channel was deleted.",
    }),
  })
  .meta({ id: "QuarantinedItem", description: "A quarantined item with its complete delivery." });
export type ItemEntity = Shown<z.output<typeof itemSchema>>;

export const renderRecord = (record: QuarantineRecord): RecordEntity => ({
  ...pickFields(recordFields, record),
  path: record.path ?? null,
  firstAt: formatTimestamp(record.firstAtMs),
  lastAt: formatTimestamp(record.lastAtMs),
});

export function renderItem(
  { record, delivery }: QuarantinedItem,
  explanation: ItemEntity["explanation"],
  redact: Redact,
): ItemEntity {
  const { method, headers, query, body, arrivedAtMs, deliveryId } = delivery;
  return {
    ...renderRecord(record),
    arrivedAt: formatTimestamp(arrivedAtMs),
    deliveryId: deliveryId ?? null,
    method,
    headers: maskSecretValues(headers),
    query: maskSecretValues(query),
    ...renderBody(body, redact),
    explanation,
  };
}

function renderBody(body: Buffer, redact: Redact): Pick<ItemEntity, "body" | "bodyEncoding"> {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body);
    return { body: text, bodyEncoding: "utf-8" };
  } catch {
    const bytes = Buffer.from(redact(body.toString("latin1")), "latin1");
    return { body: bytes.toString("base64"), bodyEncoding: "base64" };
  }
}

export const redriveResultSchema = z
  .object({
    id: id("qr"),
    status: z.enum(["released", "kept", "refused", "unavailable"]).meta({
      description:
        "`released`: the item has left quarantine. `kept`: it failed again. `refused`: it was not processed, for the reason in `message`. `unavailable`: the result is unknown, and it is safe to repeat the redrive.",
    }),
    message: z.string().nullable(),
    events: eventReceipts,
    quarantine: quarantineReceipts,
  })
  .meta({ id: "RedriveResult", description: "Result of redriving a quarantined item." });
export type RedriveResult = Shown<z.output<typeof redriveResultSchema>>;

export const createRejectedResult = (id: string, message: string): RedriveResult => ({
  id,
  status: "refused",
  message,
  events: [],
  quarantine: [],
});

export const unavailableResult = (id: string): RedriveResult => ({
  id,
  status: "unavailable",
  message: "Redis is unavailable. Try again later.",
  events: [],
  quarantine: [],
});

export function redriveResultOf(id: string, result: IngestResult): RedriveResult {
  switch (result.kind) {
    case "accepted": {
      const { events, ignored, quarantine } = result.outcome;
      const status = quarantine.length > 0 ? "kept" : "released";
      const message = ignored > 0 ? "No event was published, because `when` excludes the item." : null;
      return { id, status, message, events, quarantine };
    }
    case "tooManyItems":
      return createRejectedResult(id, `The delivery has more than ${result.limit} items.`);
    case "rejected":
      return createRejectedResult(id, "The channel rejects the item.");
    // Not reachable. Deliveries that failed verification are never processed again, and handshakes are never quarantined.
    case "unverified":
    case "handshake":
      return createRejectedResult(id, "The delivery could not be verified.");
    default:
      return result satisfies never;
  }
}
