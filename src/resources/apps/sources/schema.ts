import { z } from "zod";
import { SOURCE_STATES } from "../../../bus/sources/source-states.ts";
import { type Shown, timestamp } from "../../../http/fields.ts";
import { explainedItemSchema } from "../../events/explained-item.ts";

const cursorFields = {
  value: z.unknown().meta({
    description: "Where the source stands, as its kind writes it; null: nowhere yet, or it begins anew.",
  }),
  version: z.int().meta({ description: "Counts the writes; 0: none yet.", example: 17 }),
  updatedAt: timestamp.nullable().meta({ description: "When it moved last." }),
};

export const cursorSchema = z
  .object(cursorFields)
  .meta({ id: "SourceCursor", description: "Where a source stands: it moves with the events before it." });
export type CursorEntity = Shown<z.output<typeof cursorSchema>>;

export const sourceSchema = z
  .object({
    state: z.enum([...SOURCE_STATES, "idle"]).meta({
      description:
        "`waiting`: between two connections or polls, or for a worker, a secret, a connection. `idle`: no subscription covers it. `paused`: stopped until somebody resumes the channel. `error`, `needsReauth`: tried each quarter of an hour until that succeeds, somebody resumes it or mends what is wrong.",
    }),
    stateReason: z
      .enum(["noSubscription", "needsSetup", "needsConnection"])
      .nullable()
      .meta({ description: "What it lacks to run; null: nothing." }),
    since: timestamp,
    lastEventAt: timestamp.nullable().meta({ description: "When a delivery was last written." }),
    lastError: z
      .object({ code: z.string(), message: z.string(), at: timestamp })
      .nullable()
      .meta({ description: "What went wrong last; it may be over." }),
    lagMs: z.number().nullable().meta({
      description:
        "How far it is behind: a stream from the arrival of an event to its topic, a poll from when it was due to when it began.",
    }),
    owner: z.string().nullable().meta({ description: "The worker that runs it, or ran it last." }),
    nextPollAt: timestamp.nullable().meta({ description: "When it is asked, or connected to, next." }),
    silent: z.boolean().meta({
      description: "No event came for longer than the channel's `expectEverySeconds`.",
    }),
    cursor: cursorSchema,
  })
  .meta({ id: "Source", description: "The part of a channel that fetches." });
export type SourceEntity = Shown<z.output<typeof sourceSchema>>;

export const setCursorSchema = z.strictObject({
  value: z.unknown().meta({
    description: "Replaces the cursor as a whole; how it is written, the source's cursor shows.",
    example: { sequence: "42" },
  }),
  version: z.int().min(0).optional().meta({ description: "The version that it must be at; default: any." }),
});

export const dryRunSchema = z.strictObject({
  cursor: z.unknown().optional().meta({ description: "From where, instead of where the source stands." }),
});

const values = z.record(z.string(), z.union([z.string(), z.array(z.string())]));

export const dryRunResultSchema = z
  .object({
    request: z
      .object({ method: z.string(), url: z.string(), headers: values, body: z.string().nullable() })
      .meta({ description: "As it was sent, secrets replaced." }),
    response: z
      .object({ status: z.int(), headers: values, bytes: z.int() })
      .nullable()
      .meta({ description: "Null: none came." }),
    items: z.array(explainedItemSchema).meta({
      description: "What new items would become: published, unless their id is known; quarantined.",
    }),
    total: z.int().meta({ description: "Items in all: no more than the first are shown." }),
    cursor: z.unknown().meta({ description: "Where the source would stand; null: where it stands." }),
    end: z
      .object({
        kind: z.enum(["done", "failed", "finished", "broken", "needsReauth"]),
        code: z.string().nullable(),
        message: z.string().nullable(),
        notBefore: timestamp.nullable(),
      })
      .meta({ description: "How the poll would have ended." }),
  })
  .meta({ id: "DryRun", description: "What the next poll would do." });
export type DryRunEntity = Shown<z.output<typeof dryRunResultSchema>>;
