import { z } from "zod";
import type { SubscriptionRow } from "../../data/subscriptions.ts";
import { formatTimestamp } from "../../lib/clock.ts";

/** What of an app's events a subscription covers. */
export type EventUid =
  | { readonly kind: "app" }
  | { readonly kind: "channel"; readonly channelUid: string }
  | { readonly kind: "type"; readonly channelUid: string; readonly type: string };

/** Where it starts: `now`, `earliest`, or milliseconds since the epoch. */
export type StartAt = "now" | "earliest" | number;

/** A channel's uid holds no colon, a type may: the first one parts them. */
const EVENT_UID = /^([A-Za-z0-9_-]{1,64}):(.{1,255})$/su;

const eventUidSchema = z.string().transform((text, context): EventUid => {
  if (text === "*") return { kind: "app" };
  const [, channelUid, type] = EVENT_UID.exec(text) ?? [];
  if (channelUid === undefined || type === undefined) {
    context.addIssue({ code: "custom", message: "must be <channel_uid>:<event_type>, <channel_uid>:* or *" });
    return z.NEVER;
  }
  return type === "*" ? { kind: "channel", channelUid } : { kind: "type", channelUid, type };
});

const startAtSchema = z
  .union(
    [z.enum(["now", "earliest"]), z.iso.datetime({ offset: true }).transform((text) => Date.parse(text))],
    {
      error: "must be now, earliest or an RFC 3339 time",
    },
  )
  .default("now");

export const subscribeSchema = z.strictObject({
  eventUid: eventUidSchema,
  connectionId: z.string().min(1).nullish(),
  startAt: startAtSchema,
});

export const formatEventUid = (uid: EventUid): string => {
  switch (uid.kind) {
    case "app":
      return "*";
    case "channel":
      return `${uid.channelUid}:*`;
    case "type":
      return `${uid.channelUid}:${uid.type}`;
    default:
      return uid satisfies never;
  }
};

export const formatStartAt = (startAt: StartAt): string =>
  typeof startAt === "number" ? formatTimestamp(startAt) : startAt;

export interface SubscriptionAnswer {
  readonly id: string;
  readonly appId: string;
  readonly eventUid: string;
  readonly connectionId: string | null;
  readonly state: SubscriptionRow["state"];
  readonly startAt: string;
  readonly topics: readonly string[];
  /** The consumer group, on each of the topics. */
  readonly group: string;
  readonly handler: null;
  /** Entries not delivered yet, over all topics; null where that is not known. */
  readonly lag: number | null;
  readonly createdAt: string;
  readonly updatedAt: string;
}

export function answerOf(
  row: SubscriptionRow,
  topics: readonly string[],
  lag: number | null,
): SubscriptionAnswer {
  const { id, appId, eventUid, connectionId, state, startAt } = row;
  return {
    ...{ id, appId, eventUid, connectionId, state, startAt, topics, lag },
    group: id,
    handler: null,
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
  };
}
