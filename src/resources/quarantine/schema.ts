import { z } from "zod";
import type { QuarantinedItem, QuarantineRecord } from "../../bus/quarantine-record.ts";
import type { IngestResult } from "../../event/ingest.ts";
import { type EventReceipt, QUARANTINE_REASONS, type QuarantineReceipt } from "../../event/outcome.ts";
import type { Values } from "../../event/values.ts";
import { pageQuery } from "../../http/page.ts";
import { formatTimestamp } from "../../lib/clock.ts";

const time = z.iso
  .datetime({ offset: true, error: "must be an RFC 3339 time" })
  .transform((text) => Date.parse(text));

const filters = {
  channelId: z.string().optional(),
  reason: z.enum(QUARANTINE_REASONS).optional(),
  /** First arrival: at or after `from`, before `to`. */
  from: time.optional(),
  to: time.optional(),
} as const;

export const listQuerySchema = z.object({ ...filters, ...pageQuery });

export const redriveSchema = z.strictObject({ asNewId: z.boolean().default(false) });

export const redriveManySchema = z.strictObject({
  ...filters,
  limit: z.int().min(1).max(200).default(50),
});

export interface RecordAnswer {
  readonly id: string;
  readonly appId: string;
  readonly channelUid: string;
  readonly reason: QuarantineRecord["reason"];
  readonly path: string | null;
  readonly detail: string;
  /** The item's index in its delivery, from 0; null: the delivery as a whole, all of whose items a re-drive runs. */
  readonly item: number | null;
  /** Types of the definitions that failed; empty: all of today's are tried by a re-drive. */
  readonly definitions: readonly string[];
  readonly count: number;
  readonly firstAt: string;
  readonly lastAt: string;
}

/** The record with the delivery that its item came in, whole. */
export interface ItemAnswer extends RecordAnswer {
  readonly arrivedAt: string;
  readonly deliveryId: string | null;
  readonly method: string;
  readonly headers: Values;
  readonly query: Values;
  readonly body: string;
  readonly bodyEncoding: "utf-8" | "base64";
}

export function recordAnswerOf(record: QuarantineRecord): RecordAnswer {
  const { id, appId, channelUid, reason, path, detail, item, definitions, count } = record;
  return {
    ...{ id, appId, channelUid, reason, path: path ?? null, detail, item, definitions, count },
    firstAt: formatTimestamp(record.firstAtMs),
    lastAt: formatTimestamp(record.lastAtMs),
  };
}

export function itemAnswerOf({ record, delivery }: QuarantinedItem): ItemAnswer {
  const { method, headers, query, body, arrivedAtMs, deliveryId } = delivery;
  return {
    ...recordAnswerOf(record),
    arrivedAt: formatTimestamp(arrivedAtMs),
    deliveryId: deliveryId ?? null,
    ...{ method, headers, query },
    ...bodyAnswerOf(body),
  };
}

function bodyAnswerOf(body: Buffer): Pick<ItemAnswer, "body" | "bodyEncoding"> {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body);
    return { body: text, bodyEncoding: "utf-8" };
  } catch {
    return { body: body.toString("base64"), bodyEncoding: "base64" };
  }
}

/**
 * What became of a record that was re-driven. `released`: it is no longer in quarantine. `kept`: it failed again. `refused`: it was
 * not run, `message` says why. `unavailable`: what became of it is not certain; running it again is safe.
 */
export interface RedriveAnswer {
  readonly id: string;
  readonly status: "released" | "kept" | "refused" | "unavailable";
  readonly message: string | null;
  readonly events: readonly EventReceipt[];
  readonly quarantine: readonly QuarantineReceipt[];
}

export const refusedAnswer = (id: string, message: string): RedriveAnswer => ({
  ...{ id, status: "refused", message, events: [], quarantine: [] },
});

export const unavailableAnswer = (id: string): RedriveAnswer => ({
  ...{ id, status: "unavailable", message: "Inlet cannot do this just now.", events: [], quarantine: [] },
});

export function redriveAnswerOf(id: string, result: IngestResult): RedriveAnswer {
  switch (result.kind) {
    case "accepted": {
      const { events, quarantine } = result.outcome;
      return { id, status: quarantine.length > 0 ? "kept" : "released", message: null, events, quarantine };
    }
    case "tooManyItems":
      return refusedAnswer(id, `The delivery has more than ${result.limit} items.`);
    case "rejected":
      return refusedAnswer(id, "The channel refuses the item.");
    case "unverified":
      return refusedAnswer(id, "The delivery is not verified.");
    default:
      return result satisfies never;
  }
}
