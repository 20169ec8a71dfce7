import { z } from "zod";
import { commonSettings } from "../../../event/channel.ts";
import { integer, pathText } from "../../../event/setting-fields.ts";
import { pullSettings } from "../../pull/pull-settings.ts";
import { discriminatorSettings } from "../discriminators/discriminators.ts";
import { DECODINGS } from "../fetch/page.ts";
import { paginationSettings } from "../pagination/settings.ts";
import { polledItemSettings } from "../profile.ts";
import { requestSettings } from "../request/request-template.ts";
import { jitterSettings, scheduleSettings } from "./schedule-settings.ts";
import { startAtSettings } from "./start-at.ts";

const MIB = 1024 * 1024;

const dedupeShape = commonSettings.dedupe.unwrap().shape;

const pollingShape = {
  ...commonSettings,
  ...pullSettings,
  ...polledItemSettings,
  dedupe: z
    .strictObject({
      ...dedupeShape,
      onConflict: dedupeShape.onConflict
        .unwrap()
        .default("duplicate")
        .describe(
          "What becomes of a known id with other data: an item that was polled again is the same one, unless `versionPath` says that it has changed.",
        ),
    })
    .prefault({})
    .describe(commonSettings.dedupe.description ?? ""),
  request: requestSettings,
  schedule: scheduleSettings,
  jitter: jitterSettings,
  overlap: z
    .enum(["skip"])
    .default("skip")
    .describe("What becomes of a poll that is due while the one before is under way: it is left out."),
  timeouts: z
    .strictObject({
      connectMs: integer(100, 60_000, 10_000).describe("Until a connection is there."),
      headMs: integer(100, 120_000, 30_000).describe(
        "From the sending of a request to the head of its answer.",
      ),
      totalMs: integer(100, 240_000, 60_000).describe(
        "From the beginning of a call to the end of its answer.",
      ),
    })
    .prefault({})
    .describe("How long each call may take."),
  maxResponseBytes: integer(1, 25 * MIB, 5 * MIB).describe(
    "Of one page, decompressed. A larger one fails its poll.",
  ),
  redirects: integer(0, 10, 5).describe("How many redirects are followed."),
  decode: z
    .enum(DECODINGS)
    .optional()
    .describe(
      "As what pages are read, whatever their Content-Type says; without it that decides, and other types are not read.",
    ),
  itemsOptional: z
    .boolean()
    .default(false)
    .describe("True where a page without what `itemsPath` leads to has no items; else it fails its poll."),
  discriminator: discriminatorSettings,
  conditional: z
    .boolean()
    .default(false)
    .describe(
      "Asks with If-None-Match and If-Modified-Since, so that a server can answer that nothing is new (304). The discriminator etag always does.",
    ),
  pagination: paginationSettings.optional(),
  maxItemsPerPoll: integer(1, 100_000, 10_000).describe(
    "So many new items are published in one poll; the next one follows at once with the rest.",
  ),
  startAt: startAtSettings,
  retry: z
    .strictObject({
      attempts: integer(0, 5, 2).describe("How often a call is tried again within its poll."),
      initialMs: integer(10, 10_000, 500).describe("The first wait, doubled from try to try."),
      maxMs: integer(10, 30_000, 5_000).describe("The longest wait."),
    })
    .prefault({})
    .describe(
      "What becomes of a GET that brings no answer, or 500, 502, 503 or 504 without a Retry-After. Where all fails the next poll comes after a growing wait.",
    ),
  retryAfter: z
    .strictObject({
      honour: z.boolean().default(true).describe("False leaves the server's wishes out of account."),
      maxSeconds: integer(1, 86_400, 3_600).describe("The longest wait that is kept."),
    })
    .prefault({})
    .describe("Whether no poll comes before the time that Retry-After or X-RateLimit-Reset ask for."),
  successOn: z
    .strictObject({
      statuses: z
        .array(integer(200, 599))
        .min(1)
        .max(50)
        .optional()
        .describe("The statuses whose answers are pages; without it, 200 to 299."),
      path: pathText.optional().describe("Only if what this path over the page yields …"),
      equals: z.union([z.string(), z.number(), z.boolean()]).optional().describe("… is this value."),
    })
    .prefault({})
    .describe("Which answers are pages; others fail their poll."),
} as const;

export const pollingObject = z.strictObject(pollingShape);

/** The `config` of a polling channel with defaults filled in. */
export type PollingSettings = z.output<typeof pollingObject>;
