import { z } from "zod";
import { recordAudit } from "../../../data/accounts/audit.ts";
import {
  LIMIT_NAMES,
  type LimitDefaults,
  type LimitName,
  limitsInForce,
} from "../../../data/accounts/limits.ts";
import { recordChange } from "../../../data/changes.ts";
import type { Queryable } from "../../../data/database.ts";
import type { Row } from "../../../data/tables.ts";
import type { Caller } from "../../../http/context.ts";
import { id } from "../../../http/fields.ts";
import { ApiError, notFound } from "../../../http/problem.ts";
import type { Clock } from "../../../lib/clock.ts";
import { pathId } from "../../kit/params.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";

export interface LimitsDeps {
  readonly db: Queryable;
  readonly clock: Clock;
  readonly limitDefaults: LimitDefaults;
}

/** What a limit counts, and what is answered beyond it. */
const MEANINGS: Readonly<Record<LimitName, string>> = {
  topicBytes: "Bytes that its topics hold, estimated; beyond: `overLimit`.",
  quarantineBytes: "Bytes that its quarantine holds; beyond, 503 for what would be quarantined.",
  hookRequestsPerSecond: "Items of deliveries to its hooks, in each gateway; beyond, 429.",
  sourceDeliveriesPerSecond:
    "Items of frames and pages that its sources bring, in each gateway; beyond, they wait.",
  keyFetches: "Fetches of its senders' public keys under way, in each gateway; beyond, 503.",
  bodyBytes:
    "Bytes of decoded bodies under way in each gateway; beyond, 503. Compressed ones may become a quarter of it in a second; more of them wait, then 503.",
  schemaCompileMsPerMinute:
    "Milliseconds of processor time for compiling its schemas, in each gateway; beyond, 429.",
  rowsPerResource: "Rows of each resource; beyond, 409.",
};

const MOST = 2 ** 50;
const limit = z.int().min(1).max(MOST).nullable();
const overLimit = z.enum(["refuse", "trim"]);

const eachLimit = <T extends z.ZodType>(schemaOf: (name: LimitName) => T) =>
  Object.fromEntries(LIMIT_NAMES.map((name) => [name, schemaOf(name)])) as Record<LimitName, T>;

const limitsSchema = z
  .object({
    organizationId: id("org"),
    ...eachLimit((name) => limit.meta({ description: `${MEANINGS[name]} Null: the default.` })),
    overLimit: overLimit.meta({
      description:
        "What becomes of an organization whose topics hold more than `topicBytes`, once what all groups have acknowledged is gone: `refuse`, its hooks answer 429 and its sources wait; `trim`, its oldest events go, be they read or not.",
    }),
    inForce: z.object(eachLimit(() => z.int().nullable())).meta({
      description: "The limits that hold: its own, or the defaults. Null: there is none.",
    }),
  })
  .meta({ id: "OrganizationLimits", description: "What an organization may use." });

const limitsPatchSchema = z.strictObject({
  ...eachLimit(() => limit.optional()),
  overLimit: overLimit.optional(),
});

const params = { organizationId: pathId("org", "organization") };

/** The limits of organizations: set by the operator, seen by those whom they hold for. */
export const organizationLimits: Resource<LimitsDeps> = {
  path: "/organizations/:organizationId/limits",
  tag: "Organizations",
  routes: ({ db, clock, limitDefaults }) => {
    async function show(queryable: Queryable, organizationId: string, isOperators: boolean) {
      const own = await queryable
        .selectFrom("organizationLimits")
        .selectAll()
        .where("organizationId", "=", organizationId)
        .executeTakeFirst();
      const inForce = limitsInForce(limitDefaults, own, isOperators);
      const shown = (limits: Partial<Row<"organizationLimits">> | typeof inForce) =>
        Object.fromEntries(LIMIT_NAMES.map((name) => [name, limits[name] ?? null])) as Record<
          LimitName,
          number | null
        >;
      return {
        organizationId,
        ...shown(own ?? {}),
        overLimit: own?.overLimit ?? "refuse",
        inForce: shown(inForce),
      };
    }

    return [
      defineRoute(
        {
          method: "get",
          path: "/",
          operation: "getOrganizationLimits",
          summary: "Get the limits of an organization",
          description: "Of the caller's own; callers of the operator's organization see those of any.",
          params,
          answer: limitsSchema,
        },
        async ({ caller, params: { organizationId } }) => {
          const operators = await requireVisible(db, caller, organizationId);
          return show(db, organizationId, operators === organizationId);
        },
      ),
      defineRoute(
        {
          method: "put",
          path: "/",
          operation: "updateOrganizationLimits",
          summary: "Set the limits of an organization",
          description:
            "In force everywhere within two seconds. For callers of the operator's organization only (403), but for `overLimit`, which an organization chooses for itself. Null takes a limit back to the default.",
          params,
          body: limitsPatchSchema,
          answer: limitsSchema,
        },
        ({ caller, params: { organizationId }, body }) =>
          db.transaction().execute(async (trx) => {
            const isLimited = LIMIT_NAMES.some((name) => body[name] !== undefined);
            if (isLimited && (await findOperators(trx)) !== caller.organizationId)
              throw new ApiError(
                "permission_denied",
                "Only callers of the operator's organization set limits.",
              );
            const operators = await requireVisible(trx, caller, organizationId);
            const given = Object.entries(body).filter(([, value]) => value !== undefined);
            if (given.length > 0) {
              const change = Object.fromEntries(given);
              const none = Object.fromEntries(LIMIT_NAMES.map((name) => [name, null])) as Record<
                LimitName,
                null
              >;
              await trx
                .insertInto("organizationLimits")
                .values({ ...none, ...change, organizationId })
                .onConflict((conflict) => conflict.column("organizationId").doUpdateSet(change))
                .execute();
              await recordChange(trx, { kind: "limits", key: organizationId });
              const fields = given.map(([name]) => `limits.${name}`);
              const entry = { action: "update", entity: "organization", id: organizationId, fields } as const;
              await recordAudit(trx, caller, entry, clock());
            }
            return show(trx, organizationId, operators === organizationId);
          }),
      ),
    ];
  },
};

async function findOperators(db: Queryable): Promise<string | null> {
  const { organizationId } = await db
    .selectFrom("cluster")
    .select("organizationId")
    .executeTakeFirstOrThrow();
  return organizationId;
}

/** Answers the operator's organization. @throws ApiError 404 */
async function requireVisible(db: Queryable, caller: Caller, organizationId: string): Promise<string | null> {
  const operators = await findOperators(db);
  const isVisible = organizationId === caller.organizationId || operators === caller.organizationId;
  const found =
    isVisible &&
    (await db.selectFrom("organizations").select("id").where("id", "=", organizationId).executeTakeFirst());
  if (!found) throw notFound("organization");
  return operators;
}
