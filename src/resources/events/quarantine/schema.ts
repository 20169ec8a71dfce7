import { z } from "zod";
import type { QuarantinedItem, QuarantineRecord } from "../../../bus/quarantine/quarantine-record.ts";
import { definitionsSchema } from "../../../event/definition.ts";
import type { IngestResult } from "../../../event/ingest.ts";
import { QUARANTINE_REASONS } from "../../../event/outcome.ts";
import { id, type Shown, timeInput, timestamp } from "../../../http/fields.ts";
import { pageQuery } from "../../../http/page.ts";
import { formatTimestamp } from "../../../lib/clock.ts";
import type { Redact } from "../../../lib/secrets/redact.ts";
import { explainedItemSchema } from "../explained-item.ts";

export const filters = {
  channelId: z.string().optional().describe("The id or uid of a channel: its items alone."),
  reason: z.enum(QUARANTINE_REASONS).optional(),
  /** First arrival: at or after `from`, before `to`. */
  from: timeInput.optional(),
  to: timeInput.optional(),
} as const;

export type Filters = z.output<z.ZodObject<typeof filters>>;

export const listQuerySchema = z.object({ ...filters, ...pageQuery });

export const redriveSchema = z.strictObject({ asNewId: z.boolean().default(false) });

export const redriveManySchema = z.strictObject({
  ...filters,
  limit: z.int().min(1).max(200).default(50),
});

export const previewSchema = z.strictObject({
  ...filters,
  channelId: z.string().describe("The id or uid of the channel whose items are looked at."),
  events: definitionsSchema
    .optional()
    .describe("Definitions to be tried instead of the channel's own; nothing is changed."),
  limit: z.int().min(1).max(200).default(50),
});

/** The result of a preview. */
export const previewResultSchema = z
  .object({
    matched: z.int().meta({ description: "All that the filters leave." }),
    released: z.int().meta({ description: "Of those looked at: how many would leave quarantine." }),
    items: z.array(
      z.object({
        id: id("qr"),
        reason: z.enum(QUARANTINE_REASONS).meta({ description: "Why it is kept now." }),
        isReleased: z.boolean(),
        explanation: z.array(explainedItemSchema),
      }),
    ),
  })
  .meta({ id: "QuarantinePreview", description: "What a re-drive would do. Nothing is published or moved." });

const recordFields = {
  id: id("qr"),
  appId: id("app"),
  channelUid: z.string(),
  reason: z.enum(QUARANTINE_REASONS),
  path: z.string().nullable().meta({
    description: "The definition's setting, or the JSON Pointer into the data, that the reason is about.",
  }),
  detail: z.string(),
  item: z
    .int()
    .nullable()
    .meta({ description: "The item's index in its delivery, from 0; null: the whole of it." }),
  definitions: z
    .array(z.string())
    .meta({ description: "Types of the definitions that failed; empty: a re-drive tries all of today's." }),
  count: z.int(),
  firstAt: timestamp,
  lastAt: timestamp,
};

export const recordSchema = z
  .object(recordFields)
  .meta({ id: "QuarantineRecord", description: "An item that could not become an event, and why." });
export type RecordEntity = Shown<z.output<typeof recordSchema>>;

const valuesSchema = z.record(z.string(), z.union([z.string(), z.array(z.string())]));

export const itemSchema = z
  .object({
    ...recordFields,
    arrivedAt: timestamp,
    deliveryId: z.string().nullable(),
    method: z.string(),
    headers: valuesSchema,
    query: valuesSchema,
    body: z.string(),
    bodyEncoding: z.enum(["utf-8", "base64"]),
    explanation: z.array(explainedItemSchema).meta({
      description:
        "What it would become by today's definitions, and which of them came closest; empty where the channel is gone.",
    }),
  })
  .meta({ id: "QuarantinedItem", description: "The record with the delivery that its item came in, whole." });
export type ItemEntity = Shown<z.output<typeof itemSchema>>;

export function renderRecord(record: QuarantineRecord): RecordEntity {
  const { id, appId, channelUid, reason, path, detail, item, definitions, count } = record;
  return {
    id,
    appId,
    channelUid,
    reason,
    path: path ?? null,
    detail,
    item,
    definitions,
    count,
    firstAt: formatTimestamp(record.firstAtMs),
    lastAt: formatTimestamp(record.lastAtMs),
  };
}

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
    headers,
    query,
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

/** The result of a re-drive. */
export const redriveResultSchema = z
  .object({
    id: id("qr"),
    status: z.enum(["released", "kept", "refused", "unavailable"]).meta({
      description:
        "`released`: it is no longer in quarantine. `kept`: it failed again. `refused`: it was not run, `message` says why. `unavailable`: what became of it is not certain; running it again is safe.",
    }),
    message: z.string().nullable(),
    events: z.array(
      z.object({
        id: z.string(),
        type: z.string(),
        topic: z.string(),
        entryId: z.string(),
        status: z.enum(["published", "duplicate"]),
      }),
    ),
    quarantine: z.array(
      z.object({ id: z.string(), reason: z.enum(QUARANTINE_REASONS), path: z.string().optional() }),
    ),
  })
  .meta({ id: "RedriveResult", description: "What became of a quarantined item that was run again." });
export type RedriveResult = Shown<z.output<typeof redriveResultSchema>>;

export const refusedResult = (id: string, message: string): RedriveResult => ({
  id,
  status: "refused",
  message,
  events: [],
  quarantine: [],
});

export const unavailableResult = (id: string): RedriveResult => ({
  id,
  status: "unavailable",
  message: "Inlet cannot do this just now.",
  events: [],
  quarantine: [],
});

export function redriveResultOf(id: string, result: IngestResult): RedriveResult {
  switch (result.kind) {
    case "accepted": {
      const { events, quarantine } = result.outcome;
      return { id, status: quarantine.length > 0 ? "kept" : "released", message: null, events, quarantine };
    }
    case "tooManyItems":
      return refusedResult(id, `The delivery has more than ${result.limit} items.`);
    case "rejected":
      return refusedResult(id, "The channel refuses the item.");
    // A kept delivery was verified, or is never run again, and is no handshake.
    case "unverified":
    case "handshake":
      return refusedResult(id, "The delivery is not verified.");
    default:
      return result satisfies never;
  }
}
