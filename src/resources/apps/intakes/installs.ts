import { recordAudit } from "../../../data/accounts/audit.ts";
import type { Queryable } from "../../../data/database.ts";
import { findIntake } from "../../../data/intakes/intakes.ts";
import { claimKey, listKeys, releaseKeys } from "../../../data/intakes/route-keys.ts";
import type { AppRow, BlueprintRow } from "../../../data/tables.ts";
import { conflict, notFound } from "../../../http/errors.ts";
import { pageQuerySchema } from "../../../http/page.ts";
import { formatTimestamp } from "../../../lib/clock.ts";
import { mapBounded } from "../../../lib/map-bounded.ts";
import { listOf } from "../../kit/answer.ts";
import type { Deps } from "../../kit/deps.ts";
import { listPage } from "../../kit/list-page.ts";
import { pathId } from "../../kit/params.ts";
import { BLUEPRINTS, getRow } from "../../kit/references.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { type Install, installSchema, routeKeysSchema } from "./schema.ts";

const INSTALLS_AT_ONCE = 16;

/**
 * Routes for the installs of a blueprint, also those of other organizations. The blueprint's owner sees ids and counts, but no data of an
 * install.
 */
export const intakeInstalls: Resource = {
  tag: "Blueprints",
  params: { blueprintId: pathId("bp", "blueprint"), appId: pathId("app", "app") },
  routes: (deps) => {
    const { db, clock } = deps;
    return [
      defineRoute({
        at: "GET /blueprints/:blueprintId/installs",
        operation: "listInstalls",
        summary: "List the installs of a blueprint",
        description:
          "Lists the apps of all organizations that were installed from the blueprint, with their route keys and counts. The names and data of an install are not visible.",
        query: pageQuerySchema,
        answer: listOf(installSchema),
        async handle({ caller, params: { blueprintId }, query }) {
          const blueprint = await getRow(db, caller, BLUEPRINTS, blueprintId);
          const { items, total } = await listPage(installsOf(db, blueprintId).selectAll(), query);
          return { items: await renderInstalls(deps, blueprint, items), total };
        },
      }),
      defineRoute({
        at: "PUT /blueprints/:blueprintId/installs/:appId/route-keys",
        operation: "setRouteKeys",
        summary: "Set the route keys of an install",
        description:
          "Items with one of these keys go to the install, within two seconds. The items that the intake holds for a new key are published first. Only the blueprint's owner can set route keys, so that no organization can claim the events of another one.",
        body: routeKeysSchema,
        answer: installSchema,
        missing: "the organization has no such blueprint, or no such app was installed from it",
        conflict: "another install has one of the keys",
        async handle({ caller, params: { blueprintId, appId }, body: { keys } }) {
          const install = await db.transaction().execute(async (trx) => {
            const blueprint = await getRow(trx, caller, BLUEPRINTS, blueprintId);
            const app = await installsOf(trx, blueprintId)
              .selectAll()
              .where("id", "=", appId)
              .forUpdate()
              .executeTakeFirst();
            if (!app) throw notFound("install");
            const before = await listKeys(trx, blueprintId, [appId]);
            const removed = before.filter(({ key }) => !keys.includes(key)).map(({ key }) => key);
            await releaseKeys(trx, { blueprintId, appId }, removed);
            const added = keys.filter((key) => !before.some((row) => row.key === key)).sort();
            for (const key of added) {
              if (!(await claimKey(trx, { blueprintId, appId, key }, clock())))
                throw conflict(`keys[${keys.indexOf(key)}] belongs to another install of the blueprint.`);
            }
            if (removed.length + added.length > 0)
              await recordAudit(
                trx,
                caller,
                { action: "update", entity: "blueprint", id: blueprintId, fields: [`routeKeys.${appId}`] },
                clock(),
              );
            return { blueprint, app };
          });
          const [rendered] = await renderInstalls(deps, install.blueprint, [install.app]);
          if (rendered === undefined) throw notFound("install");
          return rendered;
        },
      }),
    ];
  },
};

const installsOf = (db: Queryable, blueprintId: string) =>
  db.selectFrom("apps").where("blueprintId", "=", blueprintId);

async function renderInstalls(
  deps: Deps,
  { id: blueprintId }: BlueprintRow,
  apps: readonly AppRow[],
): Promise<readonly Install[]> {
  const { db } = deps;
  const appIds = apps.map(({ id }) => id);
  const intake = await findIntake(db, blueprintId);
  const keys = Map.groupBy(await listKeys(db, blueprintId, appIds), ({ appId }) => appId);
  const channels = new Map(
    (await findChannels(db, appIds, intake?.routing?.channel)).map((channel) => [channel.appId, channel]),
  );
  return mapBounded(apps, INSTALLS_AT_ONCE, async ({ id: appId, organizationId, createdAt }) => {
    const channel = channels.get(appId);
    const counts = channel ? await readCounts(deps, organizationId, channel) : NO_COUNTS;
    return {
      appId,
      organizationId,
      routeKeys: (keys.get(appId) ?? []).map(({ key }) => ({ key })),
      ...counts,
      createdAt: formatTimestamp(createdAt.getTime()),
    };
  });
}

const NO_COUNTS = { eventsLastDay: 0, quarantined: 0 };

async function findChannels(db: Queryable, appIds: readonly string[], uid: string | undefined) {
  if (appIds.length === 0 || uid === undefined) return [];
  return db
    .selectFrom("channels")
    .select(["number", "appId"])
    .select((eb) =>
      eb
        .selectFrom("topics")
        .select((topics) => topics.fn.agg<readonly string[]>("array_agg", ["topics.topic"]).as("all"))
        .whereRef("topics.channelNumber", "=", "channels.number")
        .as("topics"),
    )
    .where("appId", "in", appIds)
    .where("uid", "=", uid)
    .execute();
}

async function readCounts(
  { quarantine, topics }: Pick<Deps, "quarantine" | "topics">,
  organizationId: string,
  channel: { readonly number: number; readonly topics: readonly string[] | null },
): Promise<Pick<Install, "eventsLastDay" | "quarantined">> {
  try {
    const filter = { organizationId, channelNumbers: [channel.number] };
    const [{ total }, ...activities] = await Promise.all([
      quarantine.list(filter, { limit: 0, offset: 0 }),
      ...(channel.topics ?? []).map(topics.readActivity),
    ]);
    return { eventsLastDay: activities.reduce((sum, { lastDay }) => sum + lastDay, 0), quarantined: total };
  } catch {
    return { eventsLastDay: null, quarantined: null };
  }
}
