import { z } from "zod";
import { commonFields } from "../../../event/channel.ts";
import { integer, pathText } from "../../../event/config-fields.ts";
import { dedupeSchema, onConflictSchema } from "../../../event/dedupe.ts";
import { pullFields } from "../../pull/pull-fields.ts";
import { discriminatorSchema } from "../discriminators/discriminators.ts";
import { DECODINGS } from "../fetch/page.ts";
import { paginationSchema } from "../pagination/schema.ts";
import { polledItemFields } from "../profile.ts";
import { requestSchema } from "../request/request-template.ts";
import { equalsSchema } from "./equals.ts";
import { presetFields } from "./preset-stream.ts";
import { reconcileFields } from "./reconcile.ts";
import { jitterSchema, scheduleSchema } from "./schedule.ts";
import { startAtSchema } from "./start-at.ts";

const MIB = 1024 * 1024;

const pollingShape = {
  ...commonFields,
  ...pullFields,
  ...presetFields,
  ...polledItemFields,
  ...reconcileFields,
  dedupe: dedupeSchema
    .extend({
      onConflict: onConflictSchema
        .describe(
          "How to handle an item whose id is known but whose data differs. By default it is a duplicate, because only `versionPath` marks an item as changed.",
        )
        .default("duplicate"),
    })
    .prefault({})
    .describe(commonFields.dedupe.description ?? ""),
  request: requestSchema.optional(),
  schedule: scheduleSchema,
  jitter: jitterSchema,
  overlap: z
    .enum(["skip"])
    .describe(
      "How to handle a poll that is due while the previous one is still running. The only option is to skip it.",
    )
    .default("skip"),
  timeouts: z
    .strictObject({
      connectMs: integer(100, 60_000, 10_000).describe("Timeout for connecting, in ms."),
      headMs: integer(100, 120_000, 30_000).describe(
        "Timeout from sending the request to receiving the response headers, in ms.",
      ),
      totalMs: integer(100, 240_000, 60_000).describe("Timeout for the whole call, in ms."),
    })
    .prefault({})
    .describe("Timeouts of each HTTP call."),
  maxResponseBytes: integer(1, 25 * MIB, 5 * MIB).describe(
    "Maximum size of one page after decompression, in bytes. A larger page makes the poll fail.",
  ),
  redirects: integer(0, 10, 5).describe("Maximum number of redirects to follow."),
  decode: z
    .enum(DECODINGS)
    .optional()
    .describe(
      "Format of the pages, regardless of their Content-Type. By default, the Content-Type determines the format, and a poll fails if the type is unknown.",
    ),
  itemsOptional: z
    .boolean()
    .describe(
      "Whether `itemsPath` may match nothing. If true, such a page has no items. If false, it makes the poll fail.",
    )
    .default(false),
  discriminator: discriminatorSchema.optional(),
  conditional: z
    .boolean()
    .default(false)
    .describe(
      "Whether to send If-None-Match and If-Modified-Since, so that the server can respond with 304 if the data has not changed. The etag discriminator always sends them.",
    ),
  pagination: paginationSchema.optional(),
  maxItemsPerPoll: integer(1, 100_000, 10_000).describe(
    "Maximum number of new items published per poll. The next poll follows at once with the rest.",
  ),
  startAt: startAtSchema,
  retry: z
    .strictObject({
      attempts: integer(0, 5, 2).describe("Maximum number of retries of a call within one poll."),
      initialMs: integer(10, 10_000, 500).describe(
        "Wait before the first retry, in ms. It doubles with each retry.",
      ),
      maxMs: integer(10, 30_000, 5_000).describe("Maximum wait between retries, in ms."),
    })
    .prefault({})
    .describe(
      "How to retry a GET that gets no response, or gets 500, 502, 503 or 504 without Retry-After. If all retries fail, the next poll follows after a wait that grows with each failure.",
    ),
  retryAfter: z
    .strictObject({
      honour: z
        .boolean()
        .default(true)
        .describe("Whether to honor the server's `Retry-After` and rate-limit headers."),
      maxSeconds: integer(1, 86_400, 3_600).describe("Maximum wait that the server can request, in seconds."),
    })
    .prefault({})
    .describe(
      "How to handle the Retry-After and X-RateLimit-Reset headers, by which a server asks clients to wait before the next request.",
    ),
  successOn: z
    .strictObject({
      statuses: z
        .array(integer(200, 599))
        .min(1)
        .max(50)
        .optional()
        .describe("Response statuses that count as success. Defaults to 200 to 299."),
      path: pathText.optional().describe("Path in the page. The value at this path must be `equals`."),
      equals: equalsSchema.optional().describe("Required value at `path`."),
    })
    .prefault({})
    .describe("Which responses count as success. Any other response makes the poll fail."),
} as const;

/** Settings of a polling channel, in which those of its preset may be missing. */
export const pollingObject = z.strictObject(pollingShape);

type Settings = z.output<typeof pollingObject>;

/** Settings of a polling channel, including those of its preset. */
export type PollingConfig = Omit<Settings, "request" | "discriminator"> & {
  readonly request: NonNullable<Settings["request"]>;
  readonly discriminator: NonNullable<Settings["discriminator"]>;
};

export const isComplete = (settings: Settings): settings is PollingConfig =>
  settings.request !== undefined && settings.discriminator !== undefined;
