import { z } from "zod";
import { integer, pathText } from "./config-fields.ts";
import { dedupeSchema } from "./dedupe.ts";

/** Name of a channel kind. It is a plain string, because only `channels/kinds.ts` knows all kinds. */
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

/**
 * Schema of a channel's uid, which is unique within its app. The uid never changes, because every topic name of the channel
 * contains it.
 */
export const channelUidSchema = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,64}$/, "must be 1 to 64 characters of A-Z a-z 0-9 _ -");

/**
 * Identifies a channel inside the gateway. `number` is the internal id and never changes, unlike the address, which is a credential
 * and can be rotated.
 */
export interface ChannelIdentity {
  readonly number: number;
  readonly uid: string;
  readonly kind: ChannelKindName;
  readonly appId: string;
  readonly organizationId: string;
}

/** Returns the log fields of a channel: app and uid to find it in the API, and `number` to find its Redis keys. */
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

/** Config fields that all channel kinds have in common. Their descriptions appear in the API reference. */
export const commonFields = {
  dedupe: dedupeSchema.prefault({}).describe("How the channel recognizes duplicate events."),
  retention: z
    .strictObject({
      maxAgeSeconds: integer(60, 31_536_000, 604_800).describe(
        "Maximum age of an entry in the topic, in seconds.",
      ),
      maxEntries: integer(1, 100_000_000, 100_000).describe("Maximum number of entries in the topic."),
      maxBytes: integer(MIB, 1024 * 1024 * MIB, 256 * MIB).describe(
        "Maximum size of the topic in bytes. The size is estimated.",
      ),
    })
    .prefault({})
    .describe(
      "Retention of each topic. The oldest entries are removed as soon as one of the limits is exceeded.",
    ),
  onInvalid: z
    .enum(["quarantine", "reject"])
    .default("quarantine")
    .describe(
      "How to handle an invalid item: `quarantine` stores it, `reject` responds 400 to the whole delivery.",
    ),
  onNoMatch: z
    .enum(["keepLast", "quarantine", "reject", "ignore"])
    .default("keepLast")
    .describe(
      "How to handle an item that matches no definition: `keepLast` stores the newest, `quarantine` stores all, `reject` responds 400 to the whole delivery, `ignore` only counts it as ignored.",
    ),
  itemsPath: pathText
    .optional()
    .describe("Path that selects the items in the body. Without it, the body is the only item."),
  pathSyntax: z
    .enum(["rfc9535", "jsonpath-plus"])
    .default("rfc9535")
    .describe("Syntax of the channel's paths."),
  limits: z
    .strictObject({
      maxBodyBytes: integer(1, 25 * MIB, 5 * MIB).describe(
        "Maximum body size in bytes. Larger bodies get 413.",
      ),
      maxDepth: integer(1, 512, 128).describe(
        "Maximum nesting depth of an item. Deeper items go to quarantine.",
      ),
      requestsPerSecond: integer(1, 100_000)
        .optional()
        .describe("Maximum number of requests per second. Further requests get 429."),
    })
    .prefault({})
    .describe("Limits on incoming deliveries."),
  deliveryRecords: z
    .boolean()
    .default(true)
    .describe("Whether to store the newest deliveries for a day, so that you can inspect them."),
  expectEverySeconds: integer(60, 31_536_000)
    .optional()
    .describe(
      "Maximum expected time between two events, in seconds. If no event arrives for longer, the channel is reported as silent.",
    ),
} as const;

const channelConfigSchema = z.strictObject(commonFields);

export type ChannelConfig = z.output<typeof channelConfigSchema>;
