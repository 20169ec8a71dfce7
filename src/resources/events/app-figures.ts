import { z } from "zod";
import { type Backlog, readBacklogs, UNKNOWN_BACKLOG } from "../../bus/groups/subscription-groups.ts";
import { findIdleSources } from "../../data/channels/sources.ts";
import { countDeadLetters } from "../../data/subscriptions/dead-letters.ts";
import { listCoverage } from "../../data/subscriptions/subscriptions.ts";
import { id, type Shown } from "../../http/fields.ts";
import { pageQuerySchema } from "../../http/page.ts";
import { listOf } from "../kit/answer.ts";
import type { Deps } from "../kit/deps.ts";
import { listPage } from "../kit/list-page.ts";
import { defineRoute } from "../kit/route.ts";

const unknown = "Null if Redis is unavailable, or if the apps of the page have more than 2,000 topics.";

const appFiguresSchema = z
  .object({
    id: id("app"),
    uid: z.string(),
    title: z.string(),
    channels: z.int(),
    channelsNotActive: z.int().meta({ description: "Number of channels whose state is not `active`." }),
    subscriptions: z.int(),
    subscriptionsFailing: z.int().meta({ description: "Number of subscriptions with the state `failing`." }),
    lag: z
      .int()
      .nullable()
      .meta({ description: `Number of entries not delivered to a reader yet. ${unknown}` }),
    deadLetters: z
      .int()
      .nullable()
      .meta({ description: `Dead letters of handlers and readers. ${unknown}` }),
    quarantined: z
      .int()
      .nullable()
      .meta({ description: "Number of quarantined items. Null if Redis is unavailable." }),
  })
  .meta({ id: "AppFigures", description: "Current figures of an app." });
export type AppFigures = Shown<z.output<typeof appFiguresSchema>>;

export const appFigures = (deps: Deps) =>
  defineRoute({
    at: "GET /overview/apps",
    operation: "listAppFigures",
    summary: "List the apps with their key figures",
    description:
      "One request replaces the lists of channels, subscriptions and quarantined items of each app.",
    query: pageQuerySchema,
    answer: listOf(appFiguresSchema),
    async handle({ caller: { organizationId }, query }) {
      const apps = deps.db
        .selectFrom("apps")
        .select(["id", "uid", "title"])
        .where("organizationId", "=", organizationId);
      const { items, total } = await listPage(apps, query);
      const ids = items.map((app) => app.id);
      const [channels, subscriptions] = await Promise.all([
        listChannels(deps, ids),
        listSubscriptions(deps, ids),
      ]);
      const numbers = [...channels.values()].flat().map(({ number }) => number);
      const held = await deps.quarantine.countByChannel(organizationId, numbers).catch(() => undefined);
      const figures = items.map((app): AppFigures => {
        const own = channels.get(app.id) ?? [];
        const readers = subscriptions.get(app.id) ?? [];
        return {
          ...app,
          channels: own.length,
          channelsNotActive: own.filter(({ isActive }) => !isActive).length,
          subscriptions: readers.length,
          subscriptionsFailing: readers.filter(({ isFailing }) => isFailing).length,
          lag: sum(readers.map(({ lag }) => lag)),
          deadLetters: sum(readers.map(({ deadLetters }) => deadLetters)),
          quarantined: held ? sum(own.map(({ number }) => held.get(number) ?? 0)) : null,
        };
      });
      return { items: figures, total };
    },
  });

async function listChannels({ db, channelKinds }: Deps, appIds: readonly string[]) {
  if (appIds.length === 0) return new Map<string, never>();
  const rows = await db
    .selectFrom("channels")
    .select(["appId", "number", "kind", "state"])
    .where("appId", "in", appIds)
    .execute();
  const fetching = rows.filter(({ kind }) => channelKinds.get(kind)?.addressed === false);
  const idle = await findIdleSources(
    db,
    fetching.map(({ number }) => number),
  );
  const channels = rows.map(({ appId, number, state }) => {
    return { appId, number, isActive: state === "active" && !idle.has(number) };
  });
  return Map.groupBy(channels, ({ appId }) => appId);
}

async function listSubscriptions(deps: Deps, appIds: readonly string[]) {
  if (appIds.length === 0) return new Map<string, never>();
  const rows = await deps.db
    .selectFrom("subscriptions")
    .select(["id", "appId", "state", "retentionAtRisk", "handlerFailing"])
    .where("appId", "in", appIds)
    .where("agent", "is", null)
    .execute();
  const ids = rows.map((row) => row.id);
  const [coverage, letters] = await Promise.all([listCoverage(deps.db, ids), countDeadLetters(deps.db, ids)]);
  const wanted = ids.map((id) => ({ id, topics: (coverage.get(id) ?? []).map(({ topic }) => topic) }));
  const backlogs = await readBacklogs(deps, wanted).catch(() => new Map<string, Backlog>());
  const subscriptions = rows.map(({ id, appId, state, retentionAtRisk, handlerFailing }) => {
    const { lag, setAside } = backlogs.get(id) ?? UNKNOWN_BACKLOG;
    return {
      appId,
      isFailing: state === "active" && (retentionAtRisk || handlerFailing),
      lag,
      deadLetters: sum([setAside, letters.get(id) ?? 0]),
    };
  });
  return Map.groupBy(subscriptions, ({ appId }) => appId);
}

/** Returns the sum, or `null` if one of the numbers is unknown. */
const sum = (counts: readonly (number | null)[]): number | null =>
  counts.reduce((all, count) => (all === null || count === null ? null : all + count), 0);
