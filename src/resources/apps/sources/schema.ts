import { z } from "zod";
import { SOURCE_STATES } from "../../../bus/sources/source-states.ts";
import { channelKindNameSchema } from "../../../channels/entity.ts";
import { id, type Shown, timestamp } from "../../../http/fields.ts";
import { explainedItemSchema, MAX_EXPLAINED_ITEMS } from "../../events/explained-item.ts";

const cursorFields = {
  value: z.unknown().meta({
    description:
      "Position up to which the source has fetched. The format depends on the channel kind. Null if the source has not run yet or was reset.",
  }),
  version: z
    .int()
    .meta({ description: "Increases with each write. 0 if the cursor was never written.", example: 17 }),
  updatedAt: timestamp.nullable().meta({ description: "Time of the last write." }),
};

export const cursorSchema = z.object(cursorFields).meta({
  id: "SourceCursor",
  description: "Position of a source. It advances together with the publication of the preceding events.",
});
export type CursorEntity = Shown<z.output<typeof cursorSchema>>;

export const sourceSchema = z
  .object({
    state: z.enum([...SOURCE_STATES, "idle"]).meta({
      description:
        "`connecting`: the worker is connecting. `open`: the worker is connected or polling. `waiting`: waits for the next attempt to connect or poll, for a worker, or for a missing secret or `connectionId`. `idle`: no subscription covers the channel. `paused`: stopped until you resume the channel. `error`, `needsReauth`: retried every 15 minutes until a request succeeds, the cause is fixed, or you resume the channel.",
    }),
    stateReason: z.enum(["noSubscription", "needsSetup", "needsConnection", "finished"]).nullable().meta({
      description:
        "The missing requirement that keeps the source from running, or `finished`: the server has ended its stream (status 204 or `stopOn`). Null if there is none.",
    }),
    health: z.enum(["healthy", "retrying", "failing", "stopped"]).meta({
      description:
        "`healthy`: the last run succeeded. `retrying`: the last run failed, and the source tries again. `failing`: runs keep failing, so the channel is in state `error` or `needsReauth`. `stopped`: the source does not run, because it is paused, finished or lacks something.",
    }),
    since: timestamp,
    lastEventAt: timestamp
      .nullable()
      .meta({ description: "Time at which the source last wrote a delivery." }),
    lastError: z.object({ code: z.string(), message: z.string(), at: timestamp }).nullable().meta({
      description:
        "Failure of the last run, which a success clears. Otherwise a warning of the last 24 hours, such as `gap`.",
    }),
    lagMs: z.number().nullable().meta({
      description:
        "Delay in milliseconds. For a stream: from the arrival of an event to its publication. For a poll: from its due time to its start.",
    }),
    owner: z.string().nullable().meta({ description: "Worker that runs the source, or ran it last." }),
    nextPollAt: timestamp.nullable().meta({ description: "Time of the next poll or connection attempt." }),
    wakes: z
      .object({
        count: z.int().meta({ description: "Number of wakes, including those that were combined." }),
        lastAt: timestamp,
      })
      .nullable()
      .meta({
        description:
          "Wakes by webhook channels that name this channel in `wakes`. Null if there was none in the last 30 days.",
      }),
    silent: z.boolean().meta({
      description: "Whether no event has arrived for longer than the channel's `expectEverySeconds`.",
    }),
    reconcile: z
      .object({
        channelUid: z.string().meta({ description: "Webhook channel whose missed events are published." }),
        last: z
          .object({
            at: timestamp,
            items: z.int().meta({ description: "Number of items that were compared." }),
            known: z.int().meta({ description: "Number of items that the webhook had delivered." }),
            recovered: z.int().meta({ description: "Number of items whose missed events were published." }),
            listed: z.int().meta({
              description:
                "Number of items that are older than the dedupe window. They are in quarantine as `window_passed`.",
            }),
            failed: z.int().meta({ description: "Number of items in quarantine for another reason." }),
          })
          .nullable()
          .meta({ description: "The last comparison. Null if there was none." }),
        missed: z
          .object({ count: z.int(), oldest: timestamp, newest: timestamp, foundAt: timestamp })
          .nullable()
          .meta({
            description: "Deliveries that the webhook missed, found within a day. Null if there are none.",
          }),
      })
      .nullable()
      .meta({ description: "Comparison with a webhook channel. Null without the setting `reconciles`." }),
    cursor: cursorSchema,
  })
  .meta({ id: "Source", description: "State of a channel that fetches its events." });
export const listedSourceSchema = z
  .object({
    ...sourceSchema.shape,
    appId: id("app"),
    channelUid: z.string(),
    kind: channelKindNameSchema,
  })
  .meta({ id: "ListedSource", description: "A source with its channel." });
export type ListedSource = Shown<z.output<typeof listedSourceSchema>>;
export type SourceEntity = Shown<z.output<typeof sourceSchema>>;

export const pollSchema = z
  .object({
    at: timestamp.meta({ description: "Time at which the poll started." }),
    durationMs: z.number(),
    requests: z.int().meta({ description: "Number of HTTP requests." }),
    method: z
      .string()
      .nullable()
      .meta({ description: "Method of the last request. Null if there was none." }),
    status: z
      .int()
      .nullable()
      .meta({ description: "Status of the last response. Null if the server did not respond." }),
    items: z.int().meta({ description: "Number of items in the responses." }),
    published: z.int().meta({ description: "Number of events that the poll published." }),
    error: z
      .string()
      .nullable()
      .meta({ description: "Code of the error that ended the poll. Null after a success." }),
  })
  .meta({ id: "Poll", description: "A poll that has ended." });
export type PollEntity = Shown<z.output<typeof pollSchema>>;

export const setCursorSchema = z.strictObject({
  value: z.unknown().meta({
    description: "New cursor, which replaces the stored one entirely. Use the format of the current cursor.",
    example: { sequence: "42" },
  }),
  version: z.int().min(0).optional().meta({
    description:
      "Expected version of the stored cursor. The request fails with 409 if it differs. Default: any.",
  }),
});

export const dryRunSchema = z.strictObject({
  cursor: z.unknown().optional().meta({
    description: "Cursor from which to poll. Default: the stored cursor.",
  }),
});

const values = z.record(z.string(), z.union([z.string(), z.array(z.string())]));

export const dryRunResultSchema = z
  .object({
    request: z
      .object({ method: z.string(), url: z.string(), headers: values, body: z.string().nullable() })
      .meta({ description: "The request that was sent, with secrets redacted." }),
    response: z
      .object({ status: z.int(), headers: values, bytes: z.int() })
      .nullable()
      .meta({ description: "The server's response. Null if there was none." }),
    items: z.array(explainedItemSchema).meta({
      description: "How the new items would be processed: published, detected as duplicates or quarantined.",
    }),
    total: z.int().meta({
      description: `Number of new items. Only the first ${MAX_EXPLAINED_ITEMS} are listed in \`items\`.`,
    }),
    known: z.int().meta({
      description:
        "Number of items in the response that are not new: known ones, or ones from before the start.",
    }),
    cursor: z.unknown().meta({ description: "Cursor after the poll. Null if it would not change." }),
    end: z
      .object({
        kind: z.enum(["done", "failed", "finished", "broken", "needsReauth"]),
        code: z.string().nullable(),
        message: z.string().nullable(),
        notBefore: timestamp.nullable(),
      })
      .meta({ description: "How the poll would end." }),
  })
  .meta({ id: "DryRun", description: "Result of a dry run of the next poll." });
export type DryRunEntity = Shown<z.output<typeof dryRunResultSchema>>;
