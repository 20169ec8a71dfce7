import { z } from "zod";
import { integer, pathText } from "./setting-fields.ts";

/** The name of a channel kind. `channels/kinds.ts` alone lists them. */
export type ChannelKindName = string;

export const CHANNEL_STATES = [
  "active",
  "paused",
  "needsSetup",
  "needsConnection",
  "needsReauth",
  "error",
] as const;
export type ChannelState = (typeof CHANNEL_STATES)[number];

/** `[A-Za-z0-9_-]{1,64}`, unique in its app, never changed: it is part of every topic of the channel. */
export const channelUidSchema = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,64}$/, "must be 1 to 64 characters of A-Z a-z 0-9 _ -");

/**
 * The channel as everything behind its address knows it. The address (the channel's id) is a credential and may be
 * rotated; `number` stays: dedupe, quarantine and the change feed go by it.
 */
export interface ChannelIdentity {
  readonly number: number;
  readonly uid: string;
  readonly kind: ChannelKindName;
  readonly appId: string;
  readonly organizationId: string;
}

/** The fields of a log line about a channel: the API finds it by app and uid; the number is how Redis and the feed name it. */
export const channelFacts = ({
  number,
  uid,
  appId,
  organizationId,
}: Omit<ChannelIdentity, "kind">): Readonly<Record<string, unknown>> => ({
  channel: number,
  channelUid: uid,
  appId,
  organizationId,
});

const MIB = 1024 * 1024;

/** The settings that every kind of channel has. A kind extends this shape by its own. Descriptions are read by people. */
export const commonSettings = {
  dedupe: z
    .strictObject({
      windowSeconds: integer(0, 2_592_000, 86_400).describe("How long an id is remembered; 0 turns it off."),
      by: z
        .enum(["id", "content"])
        .default("id")
        .describe("What makes two events the same: the id, or a hash of the whole item."),
      onConflict: z
        .enum(["quarantine", "duplicate", "publish"])
        .default("quarantine")
        .describe("What becomes of a known id with other data."),
    })
    .prefault({})
    .describe("How repeats are recognized."),
  retention: z
    .strictObject({
      maxAgeSeconds: integer(60, 31_536_000, 604_800).describe("Older entries go."),
      maxEntries: integer(1, 100_000_000, 100_000).describe("Beyond so many entries the oldest go."),
      maxBytes: integer(MIB, 1024 * 1024 * MIB, 256 * MIB).describe(
        "Beyond so many bytes (estimated) the oldest entries go.",
      ),
    })
    .prefault({})
    .describe("What each topic of the channel keeps: whichever comes first."),
  onInvalid: z
    .enum(["quarantine", "reject"])
    .default("quarantine")
    .describe("What becomes of an item that fails: kept, or its delivery is answered 400 as a whole."),
  onNoMatch: z
    .enum(["keepLast", "quarantine", "reject"])
    .default("keepLast")
    .describe(
      "What becomes of an item that no definition matches: the newest are kept, all are, or its delivery is answered 400.",
    ),
  itemsPath: pathText
    .optional()
    .describe("A path over the body that yields the items of a delivery; without it the body is one."),
  pathSyntax: z
    .enum(["rfc9535", "jsonpath-plus"])
    .default("rfc9535")
    .describe("How the channel's paths are written."),
  limits: z
    .strictObject({
      maxBodyBytes: integer(1, 25 * MIB, 5 * MIB).describe("A larger body is answered 413."),
      maxDepth: integer(1, 512, 128).describe("An item that nests deeper goes to quarantine."),
      requestsPerSecond: integer(1, 100_000)
        .optional()
        .describe("What the channel takes at most; more is answered 429."),
    })
    .prefault({})
    .describe("What the channel takes."),
  deliveryRecords: z
    .boolean()
    .default(true)
    .describe("Whether the newest deliveries are kept for a day, to be looked at; false: none is."),
  expectEverySeconds: integer(60, 31_536_000)
    .optional()
    .describe(
      "How often an event should come: a channel from which none came for longer is told of as silent.",
    ),
} as const;

const commonSettingsSchema = z.strictObject(commonSettings);

/** The common part of a channel's settings, defaults filled in. */
export type CommonSettings = z.output<typeof commonSettingsSchema>;
