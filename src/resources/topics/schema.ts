import type { TopicInfo } from "../../bus/topics.ts";
import type { TopicRow } from "../../data/tables.ts";
import { formatTimestamp } from "../../lib/clock.ts";

export interface EntryAnswer {
  readonly entryId: string;
  /** When it was appended, by Redis time. */
  readonly time: string;
}

export interface GroupAnswer {
  readonly name: string;
  readonly consumers: number;
  readonly pending: number;
  readonly lastDeliveredId: string;
  /** Entries not delivered yet; null where that is not known. */
  readonly lag: number | null;
}

export interface TopicAnswer {
  readonly topic: string;
  readonly channelUid: string;
  readonly type: string;
  readonly length: number;
  readonly firstEntry: EntryAnswer | null;
  readonly lastEntry: EntryAnswer | null;
  /** Of Redis memory, estimated. */
  readonly bytes: number;
  readonly groups: readonly GroupAnswer[];
}

/** A topic and what is in it; no stream yet is an empty topic. */
export function answerOf(
  row: Pick<TopicRow, "topic" | "channelUid" | "type">,
  info: TopicInfo | undefined,
): TopicAnswer {
  const { topic, channelUid, type } = row;
  return {
    ...{ topic, channelUid, type },
    length: info?.length ?? 0,
    firstEntry: entryAnswerOf(info?.firstEntryId),
    lastEntry: entryAnswerOf(info?.lastEntryId),
    bytes: info?.bytes ?? 0,
    groups: (info?.groups ?? []).map(({ name, consumers, pending, lastDeliveredId, lag }) => ({
      ...{ name, consumers, pending, lastDeliveredId, lag: lag ?? null },
    })),
  };
}

function entryAnswerOf(entryId: string | undefined): EntryAnswer | null {
  return entryId === undefined ? null : { entryId, time: formatTimestamp(Number.parseInt(entryId, 10)) };
}
