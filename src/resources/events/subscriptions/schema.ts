import { z } from "zod";
import type { EntryPlace } from "../../../bus/topics/entry-place.ts";
import type { SubscriptionRow } from "../../../data/subscriptions/subscriptions.ts";
import { jsonSchemaDocument } from "../../../event/definition.ts";
import type { HandlerSettings } from "../../../event/handler.ts";
import { describeFailure } from "../../../event/handler-failure.ts";
import type { ReaderError } from "../../../event/subscription-keys.ts";
import { id, type Shown, timeInput, timestamp } from "../../../http/fields.ts";
import { formatTimestamp } from "../../../lib/clock.ts";
import { pickFields } from "../../kit/pick-fields.ts";
import { handlerSchema, shownHandlerSchema } from "./handler.ts";

/** Events that a subscription receives: all events of an app, those of a channel, or those of one type. */
export type EventUid =
  | { readonly kind: "app" }
  | { readonly kind: "channel"; readonly channelUid: string }
  | { readonly kind: "type"; readonly channelUid: string; readonly type: string };

/** Start position: `now`, `earliest`, or a time in ms since the epoch. */
export type StartAt = "now" | "earliest" | number;

/** `uid:type`, split at the first colon, because an event type can contain colons but a channel's uid cannot. */
const EVENT_UID = /^([A-Za-z0-9_-]{1,64}):(.{1,255})$/su;

const eventUidSchema = z
  .string()
  .meta({
    description: "Events to subscribe to: `<channel uid>:<event type>`, `<channel uid>:*` or `*`.",
    example: "main:push",
  })
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

const startAtSchema = z.union(
  [z.enum(["now", "earliest"]), z.iso.datetime({ offset: true }).transform((text) => Date.parse(text))],
  {
    error: "must be now, earliest or an RFC 3339 time",
  },
);

export const subscribeSchema = z.strictObject({
  eventUid: eventUidSchema,
  connectionId: z
    .string()
    .min(1)
    .nullish()
    .describe("Id of a connection for those covered channels that fetch events."),
  startAt: startAtSchema.describe("Start position: `now`, `earliest` or an RFC 3339 time.").default("now"),
  handler: handlerSchema.nullish(),
  when: jsonSchemaDocument
    .optional()
    .describe(
      "JSON Schema over the event in the JSON format of CloudEvents. The handler gets only matching events, and the others are acknowledged. Only with a `handler`; readers filter events themselves.",
    ),
});

export const rewindSchema = z.strictObject({
  startAt: startAtSchema.describe("Position to continue from: `now`, `earliest` or an RFC 3339 time."),
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

export const lagSchema = z
  .object({
    lag: z
      .int()
      .nullable()
      .meta({ description: "Number of entries not delivered yet, over all topics. Null if unknown." }),
    lagSeconds: z.number().nullable().meta({
      description:
        "Age in seconds of the oldest entry not delivered yet. 0 if all are delivered. Null if unknown.",
    }),
    pending: z.int().nullable().meta({
      description:
        "Number of entries delivered but not acknowledged yet, over all topics. Excludes pending retries of an unordered handler. Null if unknown.",
    }),
  })
  .meta({ id: "SubscriptionLag", description: "Lag of a subscription's readers." });

export const subscriptionSchema = z
  .object({
    id: id("sub"),
    appId: id("app"),
    eventUid: z.string().meta({ example: "main:push" }),
    connectionId: z.string().nullable(),
    state: z.enum(["active", "paused", "failing"]).meta({
      description:
        "`failing`: the handler rejects events, or retention will soon remove events that have not been read.",
    }),
    startAt: z.string().meta({ description: "Start position as requested: `now`, `earliest` or a time." }),
    topics: z.array(z.string()).meta({ description: "Redis streams that the subscription covers." }),
    group: z.string().meta({ description: "Name of the consumer group on each topic." }),
    handler: shownHandlerSchema.nullable(),
    when: jsonSchemaDocument.nullable().meta({
      description: "JSON Schema of the events that the handler gets. Null if it gets all events.",
    }),
    lastError: z
      .object({
        code: z.string().meta({
          description:
            "Error code, as in `attempts[].code` of a dead letter. `reader`: the handler of an `inlet-consumer` failed.",
          example: "blocked",
        }),
        message: z.string().meta({ description: "Explanation of the error, with a suggested action." }),
        at: timestamp,
      })
      .nullable()
      .meta({
        description:
          "The last error of the handler, or of a reader with `inlet-consumer` in the last seven days. It may be resolved already.",
      }),
    ...lagSchema.shape,
    deadLetters: z.int().nullable().meta({
      description:
        "Number of stored events that the handler did not accept, or that readers using `inlet-consumer` have set aside. Null if unknown.",
    }),
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: "Subscription", description: "A reading position on all topics that match an event uid." });

export const subscribedSchema = subscriptionSchema
  .extend({
    connectedChannels: z.array(z.string()).meta({
      description: "Uids of the channels in this subscription that now use the connection.",
      example: ["main"],
    }),
  })
  .meta({ id: "Subscribed", description: "A new subscription, with the channels that use its connection." });

export const rewoundSchema = subscriptionSchema
  .extend({
    dropped: z.int().meta({
      description: "Number of entries that were delivered but not acknowledged, and are no longer pending.",
    }),
  })
  .meta({ id: "RewoundSubscription", description: "A subscription after a rewind." });
export type SubscriptionEntity = Shown<z.output<typeof subscriptionSchema>>;

export function renderSubscription(
  row: SubscriptionRow,
  topics: readonly string[],
  backlog: Pick<SubscriptionEntity, "lag" | "lagSeconds" | "pending" | "deadLetters">,
  readerError: ReaderError | undefined,
): SubscriptionEntity {
  const { id } = row;
  const { when = null, batch = null, ...handler } = (row.handler ?? {}) as Partial<HandlerSettings>;
  const isFailing = row.retentionAtRisk || row.handlerFailing;
  const state = row.state === "active" && isFailing ? "failing" : row.state;
  return {
    ...pickFields(subscriptionSchema.shape, row),
    state,
    topics,
    ...backlog,
    group: id,
    lastError: lastErrorOf(row, readerError),
    handler:
      row.handler === null
        ? null
        : { testEvents: false, ...(handler as HandlerSettings), batch, secret: null },
    when,
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
  };
}

/** Returns the later of the errors of the subscription's handler and of its readers. */
function lastErrorOf(
  { handlerError }: SubscriptionRow,
  readerError: ReaderError | undefined,
): SubscriptionEntity["lastError"] {
  if (readerError && (handlerError === null || Date.parse(handlerError.at) < Date.parse(readerError.at))) {
    const { at, message } = readerError;
    return { code: "reader", at, message: `A reader failed to handle an event: ${message}` };
  }
  return (
    handlerError && { code: handlerError.code, at: handlerError.at, message: describeFailure(handlerError) }
  );
}

/** Maximum value of `matched`. Counting stops there. */
export const MAX_COUNTED = 10_000;

const ENTRY_ID = /^\d{1,20}-\d{1,20}$/;
const MAX_TOPIC = 1_024;

const entryId = z
  .string()
  .regex(ENTRY_ID, "must be an entry id, such as 1769851800000-0")
  .refine((text) => !ENTRY_ID.test(text) || text.split("-").every((part) => BigInt(part) < 2n ** 64n), {
    error: "must consist of two 64-bit numbers",
  });

const placeSchema = z.strictObject({ topic: z.string().min(1).max(MAX_TOPIC), entryId });

/** Formats a position as `<entry id> <topic>`. Clients send the text back in `after` without parsing it. */
export const formatPlace = ({ entryId, topic }: EntryPlace): string => `${entryId} ${topic}`;

const afterSchema = z
  .string()
  .max(MAX_TOPIC + 42)
  .transform((text, context): EntryPlace => {
    const space = text.indexOf(" ");
    const parsed = placeSchema.safeParse({ entryId: text.slice(0, space), topic: text.slice(space + 1) });
    if (space > 0 && parsed.success) return parsed.data;
    context.addIssue({ code: "custom", message: "must be the `next` value of a previous response" });
    return z.NEVER;
  });

export const replaySchema = z
  .strictObject({
    from: timeInput.optional().describe("Selects events published at or after this time."),
    to: timeInput.optional().describe("Selects events published before this time."),
    types: z
      .array(z.string().min(1).max(255))
      .min(1)
      .max(100)
      .optional()
      .describe("Selects events of these types."),
    entries: z
      .array(placeSchema)
      .min(1)
      .max(1_000)
      .optional()
      .describe("Entries to send, instead of a range of times."),
    after: afterSchema
      .optional()
      .describe("Position to continue from: the `next` value of the previous response."),
    dryRun: z.boolean().default(false).describe("Whether to only count the matching events."),
    limit: z
      .int()
      .min(1)
      .max(1_000)
      .default(1_000)
      .describe("Maximum number of events to send from a range, the oldest first."),
  })
  .superRefine((body, context) => {
    if (body.entries === undefined) return;
    for (const field of ["from", "to", "types"] as const) {
      if (body[field] === undefined) continue;
      context.addIssue({ code: "custom", path: [field], message: "cannot be combined with entries" });
    }
  });
export type ReplayInput = z.output<typeof replaySchema>;

export const replayedSchema = z
  .object({
    matched: z.int().meta({
      description: `Number of matching events after the position \`after\`. At most ${MAX_COUNTED} are counted.`,
    }),
    replayed: z.int().meta({ description: "Number of events queued for the handler." }),
    next: z
      .string()
      .nullable()
      .meta({ description: "Value for `after` in the next request. Null if there are no more events." }),
  })
  .meta({ id: "Replay", description: "Result of sending past events to a handler again." });
export type Replay = Shown<z.output<typeof replayedSchema>>;
