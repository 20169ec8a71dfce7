import { z } from "zod";
import type { GroupProgress } from "../../../bus/groups/readings.ts";
import type { Queryable } from "../../../data/database.ts";
import type { HandlerAttempt } from "../../../event/handler.ts";
import type { EventReceipt } from "../../../event/outcome.ts";
import { id, type Shown, timestamp } from "../../../http/fields.ts";
import { mapBounded } from "../../../lib/map-bounded.ts";
import type { AppScope } from "../../apps/app-scope.ts";
import type { Deps } from "../../kit/deps.ts";

/** Maximum number of events per delivery for which the response shows the progress of subscriptions. */
const MAX_EVENTS = 20;
const CONCURRENCY = 8;

export const readingSchema = z
  .object({
    eventId: z.string(),
    topic: z.string(),
    entryId: z.string(),
    subscriptionId: id("sub"),
    state: z.enum(["unread", "pending", "retrying", "deadLetter", "acknowledged"]).meta({
      description:
        "`unread`: not delivered yet. `pending`: delivered to a reader, or being sent to the handler. `retrying`: the handler failed and will be called again. `deadLetter`: all attempts failed. `acknowledged`: processed.",
    }),
    reader: z.string().nullable().meta({
      description:
        "Name of the reader that has received the event but not acknowledged it. Null if there is none.",
    }),
    deliveries: z
      .int()
      .nullable()
      .meta({ description: "How often the event was delivered to a reader, if it is pending." }),
    pendingSeconds: z
      .number()
      .nullable()
      .meta({ description: "Seconds since the last delivery to a reader, if the event is pending." }),
    attempts: z
      .array(z.object({ at: timestamp, status: z.int().nullable(), code: z.string(), durationMs: z.int() }))
      .meta({
        description: "Failed calls of the handler. A successful call is not recorded.",
      }),
  })
  .meta({
    id: "Reading",
    description: "State of one event in one subscription, such as pending or acknowledged.",
  });
type Reading = Shown<z.output<typeof readingSchema>>;

/** Returns the progress of each subscription for the first `MAX_EVENTS` events. @throws UnavailableError */
export async function readingsOf(
  { db, readings, findRetry }: Deps,
  scope: AppScope,
  events: readonly EventReceipt[],
): Promise<readonly Reading[]> {
  const rows = await db
    .selectFrom("subscriptions")
    .select(["id", "handler"])
    .where((eb) => eb.and({ ...scope }))
    .where("agent", "is", null)
    .execute();
  const hasHandler = new Map(rows.map((row) => [row.id, row.handler !== null]));
  const found = await mapBounded(events.slice(0, MAX_EVENTS), CONCURRENCY, async (event) => {
    const { topic, entryId } = event;
    // Skip consumer groups that Redis clients other than Inlet have created.
    const ours = (await readings.readEntryProgress(topic, entryId)).filter(({ group }) =>
      hasHandler.has(group),
    );
    const letters = await lettersOf(db, event);
    return mapBounded(ours, CONCURRENCY, async (reading) => {
      const letter = letters.get(reading.group);
      const isDone = reading.state === "acknowledged" && letter === undefined;
      const retry =
        isDone && hasHandler.get(reading.group)
          ? await findRetry({ subscriptionId: reading.group, topic, entryId })
          : undefined;
      return render(event, reading, letter ?? retry?.attempts, stateOf(reading, letter, retry));
    });
  });
  return found.flat();
}

async function lettersOf(
  db: Queryable,
  { topic, entryId }: EventReceipt,
): Promise<ReadonlyMap<string, readonly HandlerAttempt[]>> {
  const rows = await db
    .selectFrom("deadLetters")
    .select(["subscriptionId", "attempts"])
    .where((eb) => eb.and({ topic, entryId }))
    .execute();
  return new Map(rows.map(({ subscriptionId, attempts }) => [subscriptionId, attempts]));
}

function stateOf({ state }: GroupProgress, letter: unknown, retry: unknown): Reading["state"] {
  if (letter !== undefined || state === "setAside") return "deadLetter";
  return retry === undefined ? state : "retrying";
}

function render(
  { id: eventId, topic, entryId }: EventReceipt,
  reading: GroupProgress,
  attempts: readonly HandlerAttempt[] = [],
  state: Reading["state"],
): Reading {
  const isPending = reading.state === "pending";
  return {
    eventId,
    topic,
    entryId,
    subscriptionId: reading.group,
    state,
    attempts,
    reader: isPending ? reading.reader : null,
    deliveries: isPending ? reading.deliveries : null,
    pendingSeconds: isPending ? reading.idleMs / 1000 : null,
  };
}
