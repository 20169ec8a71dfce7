import { z } from "zod";
import { recordAudit } from "../../data/accounts/audit.ts";
import { LIMIT_NAMES, type LimitName, limitsInForce } from "../../data/accounts/limits.ts";
import { recordChange } from "../../data/changes.ts";
import type { Queryable } from "../../data/database.ts";
import type { Row } from "../../data/tables.ts";
import type { Caller } from "../../http/context.ts";
import { ApiError, notFound } from "../../http/errors.ts";
import { id } from "../../http/fields.ts";
import { pathId } from "../kit/params.ts";
import type { Resource } from "../kit/resource.ts";
import { defineRoute } from "../kit/route.ts";

const MEANINGS: Readonly<Record<LimitName, string>> = {
  topicBytes:
    "Maximum size of the topics in bytes, as estimated. `overLimit` determines what happens when it is exceeded.",
  quarantineBytes:
    "Maximum size of the quarantine in bytes. Deliveries that would exceed it are rejected with 503.",
  hookRequestsPerSecond:
    "Maximum number of items per second that each gateway accepts in deliveries to hooks. Further deliveries are rejected with 429.",
  sourceDeliveriesPerSecond:
    "Maximum number of items per second that each gateway accepts from sources. Above this rate, sources wait.",
  keyFetches:
    "Maximum number of concurrent fetches of senders' public keys on each gateway. Deliveries that need another fetch are rejected with 503.",
  bodyBytes:
    "Maximum size of all decoded bodies in flight on each gateway, in bytes. Further deliveries are rejected with 503. Compressed bodies may decode to a quarter of this size per second. Further ones wait, and are then rejected with 503.",
  schemaCompileMsPerMinute:
    "CPU time per minute that each gateway may spend on compiling schemas, in milliseconds. Further requests that compile schemas are rejected with 429.",
  rowsPerResource: "Maximum number of rows of each resource. Requests to create more are rejected with 409.",
};

const MOST = 2 ** 50;
const limit = z.int().min(1).max(MOST).nullable();
const overLimit = z.enum(["refuse", "trim"]);

const eachLimit = <T>(of: (name: LimitName) => T) =>
  Object.fromEntries(LIMIT_NAMES.map((name) => [name, of(name)])) as Record<LimitName, T>;

const limitsSchema = z
  .object({
    organizationId: id("org"),
    ...eachLimit((name) => limit.meta({ description: `${MEANINGS[name]} \`null\` means the default.` })),
    overLimit: overLimit.meta({
      description:
        "The effect when topics exceed `topicBytes` even after all acknowledged events were deleted. With `refuse`, hooks return 429 and sources wait. With `trim`, the oldest events are deleted, even if they are unread.",
    }),
    inForce: z.object(eachLimit(() => z.int().nullable())).meta({
      description: "The effective limits: the organization's own or the defaults. `null` means unlimited.",
    }),
  })
  .meta({ id: "OrganizationLimits", description: "The resource limits of an organization." });

const limitsPatchSchema = z.strictObject({
  ...eachLimit(() => limit.optional()),
  overLimit: overLimit.optional(),
});

/** Routes for the limits of organizations. Only the operator can set limits, but each organization can read its own. */
export const organizationLimits: Resource = {
  tag: "Organizations",
  params: { organizationId: pathId("org", "organization") },
  routes: ({ db, clock, limitDefaults }) => {
    async function show(queryable: Queryable, organizationId: string, isOperators: boolean) {
      const own = await queryable
        .selectFrom("organizationLimits")
        .selectAll()
        .where("organizationId", "=", organizationId)
        .executeTakeFirst();
      const inForce = limitsInForce(limitDefaults, own, isOperators);
      const shown = (limits: Partial<Row<"organizationLimits">> | typeof inForce) =>
        eachLimit((name) => limits[name] ?? null);
      return {
        organizationId,
        ...shown(own ?? {}),
        overLimit: own?.overLimit ?? "refuse",
        inForce: shown(inForce),
      };
    }

    return [
      defineRoute({
        at: "GET /organizations/:organizationId/limits",
        operation: "getOrganizationLimits",
        summary: "Get the limits of an organization",
        description:
          "Callers can read their own organization. The operator's organization can read any organization.",
        answer: limitsSchema,
        async handle({ caller, params: { organizationId } }) {
          const operators = await requireVisible(db, caller, organizationId);
          return show(db, organizationId, operators === organizationId);
        },
      }),
      defineRoute({
        at: "PUT /organizations/:organizationId/limits",
        operation: "updateOrganizationLimits",
        summary: "Set the limits of an organization",
        description:
          "All gateways apply the change within two seconds. Only the operator's organization can set limits (403). Each organization can set its own `overLimit`. `null` resets a limit to the default.",
        body: limitsPatchSchema,
        answer: limitsSchema,
        handle: ({ caller, params: { organizationId }, body }) =>
          db.transaction().execute(async (trx) => {
            const isLimited = LIMIT_NAMES.some((name) => body[name] !== undefined);
            if (isLimited && (await findOperators(trx)) !== caller.organizationId)
              throw new ApiError("permission_denied", "Only the operator's organization can set limits.");
            const operators = await requireVisible(trx, caller, organizationId);
            const given = Object.entries(body).filter(([, value]) => value !== undefined);
            if (given.length > 0) {
              const change = Object.fromEntries(given);
              await trx
                .insertInto("organizationLimits")
                .values({ ...eachLimit(() => null), ...change, organizationId })
                .onConflict((conflict) => conflict.column("organizationId").doUpdateSet(change))
                .execute();
              await recordChange(trx, { kind: "limits", key: organizationId });
              const fields = given.map(([name]) => `limits.${name}`);
              const entry = { action: "update", entity: "organization", id: organizationId, fields } as const;
              await recordAudit(trx, caller, entry, clock());
            }
            return show(trx, organizationId, operators === organizationId);
          }),
      }),
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

/** Returns the id of the operator's organization. @throws ApiError 404 if the caller may not see the given organization */
async function requireVisible(db: Queryable, caller: Caller, organizationId: string): Promise<string | null> {
  const operators = await findOperators(db);
  const isVisible = organizationId === caller.organizationId || operators === caller.organizationId;
  const found =
    isVisible &&
    (await db.selectFrom("organizations").select("id").where("id", "=", organizationId).executeTakeFirst());
  if (!found) throw notFound("organization");
  return operators;
}
