import { z } from "zod";
import type { TopicInfo } from "../../../bus/topics/topics.ts";
import type { TopicRow } from "../../../data/tables.ts";
import { type Shown, timestamp } from "../../../http/fields.ts";
import { formatTimestamp } from "../../../lib/clock.ts";

const entrySchema = z.object({
  entryId: z.string().meta({ example: "1769851800000-0" }),
  time: timestamp.meta({ description: "When it was appended, by Redis time." }),
});

const groupSchema = z.object({
  name: z.string(),
  consumers: z.int(),
  pending: z.int(),
  lastDeliveredId: z.string(),
  lag: z.int().nullable().meta({ description: "Entries not delivered yet; null where that is not known." }),
});

/** A topic as the API answers it. */
export const topicSchema = z
  .object({
    topic: z.string().meta({ description: "The name of its Redis stream." }),
    channelUid: z.string(),
    type: z.string(),
    length: z.int(),
    firstEntry: entrySchema.nullable(),
    lastEntry: entrySchema.nullable(),
    bytes: z.int().meta({ description: "Of Redis memory, estimated." }),
    groups: z.array(groupSchema),
  })
  .meta({ id: "Topic", description: "Where the events of one type of one channel are published." });
export type Topic = Shown<z.output<typeof topicSchema>>;

/** A topic and what is in it; no stream yet is an empty topic. */
export function renderTopic(
  row: Pick<TopicRow, "topic" | "channelUid" | "type">,
  info: TopicInfo | undefined,
): Topic {
  const { topic, channelUid, type } = row;
  return {
    topic,
    channelUid,
    type,
    length: info?.length ?? 0,
    firstEntry: renderEntry(info?.firstEntryId),
    lastEntry: renderEntry(info?.lastEntryId),
    bytes: info?.bytes ?? 0,
    groups: (info?.groups ?? []).map(({ name, consumers, pending, lastDeliveredId, lag }) => ({
      name,
      consumers,
      pending,
      lastDeliveredId,
      lag: lag ?? null,
    })),
  };
}

const renderEntry = (entryId: string | undefined): Topic["firstEntry"] =>
  entryId === undefined ? null : { entryId, time: formatTimestamp(Number.parseInt(entryId, 10)) };
