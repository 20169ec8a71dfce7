import { z } from "zod";
import { listNewestDeadLetters, MAX_COUNTED_LETTERS } from "../../data/subscriptions/newest-dead-letters.ts";
import type { Row } from "../../data/tables.ts";
import type { HandlerSettings } from "../../event/handler.ts";
import type { Caller } from "../../http/context.ts";
import { notFound } from "../../http/errors.ts";
import { deleted, id, type Shown, timeInput, timestamp } from "../../http/fields.ts";
import { formatCursor, newestQuery, pageQuerySchema, parseCursor } from "../../http/page.ts";
import { appScopeOf, subscriptionParams } from "../apps/app-scope.ts";
import { findPlaces, placeFilters } from "../apps/organization-channels.ts";
import { listOf, newestOf } from "../kit/answer.ts";
import { listPage, mapPage } from "../kit/list-page.ts";
import { pathId } from "../kit/params.ts";
import { pickFields } from "../kit/pick-fields.ts";
import { recordUse } from "../kit/record-use.ts";
import type { Resource } from "../kit/resource.ts";
import { defineRoute } from "../kit/route.ts";

const attemptSchema = z.object({
  at: timestamp,
  status: z.int().nullable().meta({ description: "HTTP status, or null if there was no response." }),
  code: z.string().meta({
    description: "`http` for an HTTP error, or the reason why there was no response.",
    example: "timeout",
  }),
  durationMs: z.int(),
});

const deadLetterSchema = z
  .object({
    id: id("dl"),
    subscriptionId: id("sub"),
    topic: z.string(),
    entryId: z.string(),
    type: z.string(),
    reason: z.string().meta({ example: "HTTP 500" }),
    attempts: z.array(attemptSchema),
    event: z.record(z.string(), z.string()).meta({
      description:
        "The fields of the topic entry: attributes of the event, and `data` or `data_base64`, as text.",
    }),
    createdAt: timestamp,
  })
  .meta({ id: "DeadLetter", description: "An event that a handler did not accept in any attempt." });
const listedDeadLetterSchema = z
  .object({ ...deadLetterSchema.shape, appId: id("app") })
  .meta({ id: "ListedDeadLetter", description: "A dead letter with its app." });
type DeadLetter = Shown<z.output<typeof deadLetterSchema>>;

const filters = {
  type: z.string().min(1).max(255).optional().describe("Selects events of this type."),
  from: timeInput.optional().describe("Selects dead letters created at or after this time."),
  to: timeInput.optional().describe("Selects dead letters created at or before this time."),
};

type Filters = z.output<z.ZodObject<typeof filters>>;

const listQuerySchema = z.strictObject({ ...pageQuerySchema.shape, ...filters });

const newestQuerySchema = z.object({
  ...placeFilters,
  subscriptionId: z
    .string()
    .min(1)
    .max(64)
    .optional()
    .describe("Id of a subscription. Selects its dead letters."),
  ...filters,
  ...newestQuery,
});

const redriveManySchema = z.strictObject({
  ...filters,
  dryRun: z.boolean().default(false).describe("Whether to only count the matching dead letters."),
  limit: z
    .int()
    .min(1)
    .max(1_000)
    .default(1_000)
    .describe("Maximum number of dead letters to send, the oldest first."),
});

const redriveManyResultSchema = z
  .object({
    matched: z.int().meta({ description: "Number of dead letters that match the filter." }),
    redriven: z.int().meta({ description: "Number of dead letters queued for sending." }),
    breaksOrder: z.boolean().meta({
      description:
        "Whether the handler is `ordered`. It then gets these events out of order, because it has received later ones.",
    }),
  })
  .meta({ id: "DeadLetterRedrive", description: "Result of sending dead letters again." });

function renderDeadLetter(row: Row<"deadLetters">): DeadLetter {
  const { fields, createdAt } = row;
  const names = fields.filter((_, at) => at % 2 === 0);
  return {
    ...pickFields(deadLetterSchema.shape, row),
    event: Object.fromEntries(names.map((name, at) => [name, fields[2 * at + 1] ?? ""])),
    createdAt: createdAt.toISOString(),
  };
}

type Letter = Row<"deadLetters">;
type InSubscription = Readonly<Record<"appId" | "subscriptionId", string>>;

/** Routes for dead letters: events that a subscription's handler still rejected at the last retry. */
export const deadLetters: Resource = {
  tag: "Dead letters",
  params: { ...subscriptionParams, deadLetterId: pathId("dl", "dead letter") },
  routes(deps) {
    const { db, clock, sendAgain } = deps;

    /** @throws ApiError 404 if the app has no such subscription */
    async function getHandled(caller: Caller, params: InSubscription) {
      const found = await db
        .selectFrom("subscriptions")
        .select(["id", "handler"])
        .where((eb) => eb.and({ ...appScopeOf(caller, params), id: params.subscriptionId }))
        .executeTakeFirst();
      if (!found) throw notFound("subscription");
      return found;
    }

    /** Selects the dead letters that match the filters. @throws ApiError 404 if the app has no such subscription */
    async function lettersOf(caller: Caller, params: InSubscription, filters: Filters = {}) {
      const { id } = await getHandled(caller, params);
      const { type, from, to } = filters;
      let letters = db.selectFrom("deadLetters").selectAll().where("subscriptionId", "=", id);
      if (type !== undefined) letters = letters.where("type", "=", type);
      if (from !== undefined) letters = letters.where("createdAt", ">=", new Date(from));
      if (to !== undefined) letters = letters.where("createdAt", "<=", new Date(to));
      return letters;
    }

    async function getLetter(
      caller: Caller,
      params: InSubscription & { readonly deadLetterId: string },
    ): Promise<Letter> {
      const letters = await lettersOf(caller, params);
      const letter = await letters.where("id", "=", params.deadLetterId).executeTakeFirst();
      if (!letter) throw notFound("dead letter");
      return letter;
    }

    const remove = ({ id }: Letter) => db.deleteFrom("deadLetters").where("id", "=", id).execute();

    /** Queues the event again and deletes the dead letter. After an interruption, a repeated call does not send the event twice. */
    async function redrive(letter: Letter): Promise<void> {
      const { id, subscriptionId, topic, entryId, fields } = letter;
      await sendAgain(id, { subscriptionId, topic, entryId, fields, firstAtMs: clock(), attempts: [] });
      await remove(letter);
    }

    return [
      defineRoute({
        at: "GET /dead-letters",
        operation: "listNewestDeadLetters",
        summary: "List the newest dead letters of all apps",
        description: `A response may contain fewer than \`limit\` dead letters when their events are large. \`X-Total-Count\` stops at ${MAX_COUNTED_LETTERS}.`,
        permission: "apps.read",
        query: newestQuerySchema,
        answer: newestOf(listedDeadLetterSchema),
        async handle({ caller, query: { cursor, channel, ...query } }) {
          const { organizationId } = caller;
          const { appId } = query;
          const after = parseCursor(cursor);
          const { letters, total, last } = await listNewestDeadLetters(db, organizationId, {
            ...query,
            channelNumbers:
              channel === undefined ? undefined : await findPlaces(deps, organizationId, { appId, channel }),
            after: after && { createdAtMs: after.score, id: after.id },
          });
          const subscriptionIds = [...new Set(letters.map(({ subscriptionId }) => subscriptionId))];
          await recordUse(deps, caller, "read", "deadLetter", subscriptionIds);
          return {
            items: letters.map((letter) => ({ ...renderDeadLetter(letter), appId: letter.appId })),
            total,
            next: last && formatCursor({ score: last.createdAt.getTime(), id: last.id }),
          };
        },
      }),
      defineRoute({
        at: "GET /apps/:appId/subscriptions/:subscriptionId/dead-letters",
        operation: "listDeadLetters",
        summary: "List the dead letters of a subscription",
        query: listQuerySchema,
        answer: listOf(deadLetterSchema),
        async handle({ caller, params, query: { limit, offset, ...filters } }) {
          const letters = await lettersOf(caller, params, filters);
          // A listing is recorded with the id of the subscription.
          await recordUse(deps, caller, "read", "deadLetter", [params.subscriptionId]);
          return mapPage(await listPage(letters, { limit, offset }), renderDeadLetter);
        },
      }),
      defineRoute({
        at: "GET /apps/:appId/subscriptions/:subscriptionId/dead-letters/:deadLetterId",
        operation: "getDeadLetter",
        summary: "Get a dead letter",
        answer: deadLetterSchema,
        async handle({ caller, params }) {
          const letter = await getLetter(caller, params);
          await recordUse(deps, caller, "read", "deadLetter", [letter.id]);
          return renderDeadLetter(letter);
        },
      }),
      defineRoute({
        at: "DELETE /apps/:appId/subscriptions/:subscriptionId/dead-letters/:deadLetterId",
        operation: "deleteDeadLetter",
        summary: "Delete a dead letter",
        answer: deleted,
        async handle({ caller, params }) {
          const letter = await getLetter(caller, params);
          await recordUse(deps, caller, "delete", "deadLetter", [letter.id]);
          await remove(letter);
          return { id: letter.id };
        },
      }),
      defineRoute({
        at: "POST /apps/:appId/subscriptions/:subscriptionId/dead-letters/redrive",
        operation: "redriveDeadLetters",
        summary: "Send many dead letters to the handler again",
        description:
          "Sends the oldest dead letters first. Each is retried for 24 hours, like a new event. With `dryRun`, only counts the matching dead letters.\n\nThe events arrive after later ones, also if the handler is `ordered`.",
        body: redriveManySchema,
        answer: redriveManyResultSchema,
        async handle({ caller, params, body: { dryRun, limit, ...filters } }) {
          const { handler } = await getHandled(caller, params);
          const breaksOrder = ((handler as Partial<HandlerSettings> | null)?.ordered ?? false) !== false;
          const page = { limit: dryRun ? 1 : limit, offset: 0 };
          const { items, total } = await listPage(await lettersOf(caller, params, filters), page);
          if (dryRun) return { matched: total, redriven: 0, breaksOrder };
          const ids = items.map(({ id }) => id);
          await recordUse(deps, caller, "redrive", "deadLetter", ids);
          for (const letter of items) await redrive(letter);
          return { matched: total, redriven: items.length, breaksOrder };
        },
      }),
      defineRoute({
        at: "POST /apps/:appId/subscriptions/:subscriptionId/dead-letters/:deadLetterId/redrive",
        operation: "redriveDeadLetter",
        summary: "Send a dead letter to the handler again",
        description:
          "Removes the dead letter from the list and sends its event. If the handler does not accept it within 24 hours, a new dead letter is created.\n\nThe event arrives after later ones, also if the handler is `ordered`.",
        body: z.strictObject({}),
        answer: deleted,
        async handle({ caller, params }) {
          const letter = await getLetter(caller, params);
          await recordUse(deps, caller, "redrive", "deadLetter", [letter.id]);
          await redrive(letter);
          return { id: letter.id };
        },
      }),
    ];
  },
};
