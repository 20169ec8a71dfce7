import { z } from "zod";
import type { SubscriptionRow } from "../../../data/subscriptions/subscriptions.ts";
import { describeFailure } from "../../../delivery/handler-failure.ts";
import type { HandlerSettings } from "../../../event/handler.ts";
import { id, type Shown, timestamp } from "../../../http/fields.ts";
import { formatTimestamp } from "../../../lib/clock.ts";
import { handlerSchema, shownHandlerSchema } from "./handler.ts";

/** The part of an app's events that a subscription covers. */
export type EventUid =
  | { readonly kind: "app" }
  | { readonly kind: "channel"; readonly channelUid: string }
  | { readonly kind: "type"; readonly channelUid: string; readonly type: string };

/** Where it starts: `now`, `earliest`, or milliseconds since the epoch. */
export type StartAt = "now" | "earliest" | number;

/** A channel's uid holds no colon, a type may: the first one parts them. */
const EVENT_UID = /^([A-Za-z0-9_-]{1,64}):(.{1,255})$/su;

const eventUidSchema = z
  .string()
  .meta({ description: "`<channel uid>:<event type>`, `<channel uid>:*` or `*`.", example: "main:push" })
  .transform((text, context): EventUid => {
    if (text === "*") return { kind: "app" };
    const [, channelUid, type] = EVENT_UID.exec(text) ?? [];
    if (channelUid === undefined || type === undefined) {
      context.addIssue({
        code: "custom",
        message: "must be <channel_uid>:<event_type>, <channel_uid>:* or *",
      });
      return z.NEVER;
    }
    return type === "*" ? { kind: "channel", channelUid } : { kind: "type", channelUid, type };
  });

const placeSchema = z.union(
  [z.enum(["now", "earliest"]), z.iso.datetime({ offset: true }).transform((text) => Date.parse(text))],
  {
    error: "must be now, earliest or an RFC 3339 time",
  },
);

export const subscribeSchema = z.strictObject({
  eventUid: eventUidSchema,
  connectionId: z.string().min(1).nullish(),
  startAt: placeSchema.default("now"),
  handler: handlerSchema.nullish(),
});

export const rewindSchema = z.strictObject({
  startAt: placeSchema.describe("From where on it reads again: `now`, `earliest` or an RFC 3339 time."),
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

/** How far its readers are behind. */
export const lagSchema = z
  .object({
    lag: z
      .int()
      .nullable()
      .meta({ description: "Entries not delivered yet, over all topics; null where that is not known." }),
    lagSeconds: z
      .number()
      .nullable()
      .meta({ description: "How long the oldest of them has been there; 0 where there is none." }),
    pending: z.int().nullable().meta({
      description:
        "Entries delivered and not acknowledged yet, over all topics. Not among them: those that an unordered handler is to be sent again.",
    }),
  })
  .meta({ id: "SubscriptionLag", description: "How far the readers of a subscription are behind." });

/** A subscription as the API answers it. */
export const subscriptionSchema = z
  .object({
    id: id("sub"),
    appId: id("app"),
    eventUid: z.string().meta({ example: "main:push" }),
    connectionId: z.string().nullable(),
    state: z.enum(["active", "paused", "failing"]).meta({
      description:
        "`failing`: retention is about to take what was not read yet, or the handler does not take what it is sent.",
    }),
    startAt: z.string().meta({ description: "As it was given: `now`, `earliest` or a time." }),
    topics: z.array(z.string()),
    group: z.string().meta({ description: "The consumer group, on each of the topics." }),
    handler: shownHandlerSchema.nullable(),
    lastError: z
      .object({
        code: z
          .string()
          .meta({ description: "As in `attempts[].code` of a dead letter.", example: "blocked" }),
        message: z.string().meta({ description: "What went wrong, and what to do about it." }),
        at: timestamp,
      })
      .nullable()
      .meta({ description: "Why its handler did not take an event last; it may be over." }),
    ...lagSchema.shape,
    deadLetters: z.int().nullable().meta({
      description:
        "Events that its handler did not take, or its readers by `inlet-consumer` set aside, and that are still kept.",
    }),
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: "Subscription", description: "A reader's place on the topics that it covers." });

/** A subscription that was just made. */
export const subscribedSchema = subscriptionSchema
  .extend({
    connectedChannels: z.array(z.string()).meta({
      description: "The uids of the channels that it covers and that carry its connection now.",
      example: ["main"],
    }),
  })
  .meta({ id: "Subscribed", description: "A new subscription, and the channels that have its connection." });

/** A subscription that was set anew. */
export const rewoundSchema = subscriptionSchema
  .extend({
    dropped: z.int().meta({
      description: "Entries that readers had in hand and did not acknowledge; they are no longer pending.",
    }),
  })
  .meta({ id: "RewoundSubscription", description: "A subscription that reads again from another place." });
export type SubscriptionEntity = Shown<z.output<typeof subscriptionSchema>>;

export function renderSubscription(
  row: SubscriptionRow,
  topics: readonly string[],
  backlog: Pick<SubscriptionEntity, "lag" | "lagSeconds" | "pending" | "deadLetters">,
): SubscriptionEntity {
  const { id, appId, eventUid, connectionId, startAt, handlerError } = row;
  const isFailing = row.retentionAtRisk || row.handlerFailing;
  const state = row.state === "active" && isFailing ? "failing" : row.state;
  return {
    id,
    appId,
    eventUid,
    connectionId,
    state,
    startAt,
    topics,
    ...backlog,
    group: id,
    lastError: handlerError && {
      code: handlerError.code,
      at: handlerError.at,
      message: describeFailure(handlerError),
    },
    handler:
      row.handler === null ? null : { testEvents: false, ...(row.handler as HandlerSettings), secret: null },
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
  };
}
