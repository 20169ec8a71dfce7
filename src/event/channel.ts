import { z } from "zod";

export const CHANNEL_KINDS = ["webhook", "sse", "polling", "cloudevents"] as const;
export type ChannelKindName = (typeof CHANNEL_KINDS)[number];

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

const MIB = 1024 * 1024;

/** The settings that every kind of channel has. A kind extends this shape by its own. */
export const commonSettings = {
  dedupe: z
    .strictObject({
      windowSeconds: z
        .int()
        .min(0)
        .max(2_592_000)
        .default(86_400)
        .describe("how long an id is remembered; 0 = off"),
      by: z.enum(["id", "content"]).default("id"),
      onConflict: z
        .enum(["quarantine", "duplicate", "publish"])
        .default("quarantine")
        .describe("what becomes of a known id with other data"),
    })
    .prefault({}),
  retention: z
    .strictObject({
      maxAgeSeconds: z.int().min(60).max(31_536_000).default(604_800),
      maxEntries: z.int().min(1).max(100_000_000).default(100_000),
      maxBytes: z
        .int()
        .min(MIB)
        .max(1024 * 1024 * MIB)
        .default(256 * MIB),
    })
    .prefault({}),
  onInvalid: z.enum(["quarantine", "reject"]).default("quarantine"),
  onNoMatch: z.enum(["keepLast", "quarantine", "reject"]).default("keepLast"),
  itemsPath: z.string().min(1).max(1024).optional(),
  pathSyntax: z.enum(["rfc9535", "jsonpath-plus"]).default("rfc9535"),
  limits: z
    .strictObject({
      maxBodyBytes: z
        .int()
        .min(1)
        .max(25 * MIB)
        .default(5 * MIB),
      maxDepth: z.int().min(1).max(512).default(128),
      requestsPerSecond: z.int().min(1).max(100_000).optional(),
    })
    .prefault({}),
  expectEverySeconds: z.int().min(60).max(31_536_000).optional(),
} as const;

const commonSettingsSchema = z.strictObject(commonSettings);

/** The common part of a channel's settings, defaults filled in. */
export type CommonSettings = z.output<typeof commonSettingsSchema>;
