import { z } from "zod";
import { isMutedAt } from "../../../data/problems/problems.ts";
import { readAppActivity } from "../../../data/series/app-activity.ts";
import { id, type Shown, timestamp } from "../../../http/fields.ts";
import { pageQuery } from "../../../http/page.ts";
import { formatTimestamp } from "../../../lib/clock.ts";
import { listOf } from "../../kit/answer.ts";
import type { Deps } from "../../kit/deps.ts";
import { listPage } from "../../kit/list-page.ts";
import { defineRoute } from "../../kit/route.ts";
import { findApps } from "./queries.ts";
import { appFilters } from "./schema.ts";

const RATE_MINUTES = 60;
const MINUTE_MS = 60_000;

const appSummarySchema = z
  .object({
    id: id("app"),
    uid: z.string(),
    title: z.string(),
    blueprintId: z.string().nullable(),
    isSystem: z.boolean().meta({ description: "Whether this is the system app `inlet`." }),
    createdAt: timestamp,
    channels: z.int(),
    lastEventAt: timestamp.nullable().meta({
      description:
        "Start of the minute in which the last event was published. After 48 hours, start of the hour. Null if there was none within 90 days. Ignores events that are counted under `other`, because the organization has more series than Inlet counts.",
    }),
    eventsPerMinute: z
      .number()
      .nullable()
      .meta({
        description: `Average number of events published per minute over the last ${RATE_MINUTES} minutes. Null if some events of the organization are counted under \`other\`, because it has more series than Inlet counts.`,
      }),
    quarantined: z
      .int()
      .nullable()
      .meta({ description: "Number of quarantined items. Null if Redis is unavailable." }),
    openProblems: z
      .int()
      .meta({ description: "Number of problems of the app that are neither resolved nor muted." }),
    health: z.enum(["ok", "warning", "error"]).meta({
      description:
        "The highest severity of the problems that are neither resolved nor muted. `ok` if there are none.",
    }),
  })
  .meta({ id: "AppSummary", description: "An app with its current figures, for lists." });
export type AppSummary = Shown<z.output<typeof appSummarySchema>>;

/**
 * Lists apps with figures. A page costs four queries to PostgreSQL: apps, channels, counts and problems. It costs two calls to Redis for the
 * quarantined items, and one more for each further 1,000 pairs of a channel and a reason with quarantined items.
 */
export const appSummaries = (deps: Deps) =>
  defineRoute({
    at: "GET /apps/summaries",
    operation: "listAppSummaries",
    summary: "List the apps with channels, rate, quarantined items and health",
    description:
      "Lists the same apps as `GET /apps`, in the same order. A page costs a fixed number of queries. The counts of events are those of `GET /metrics/series`, so the newest 10 seconds are missing.",
    query: z.object({ ...appFilters, ...pageQuery }),
    answer: listOf(appSummarySchema),
    async handle({ caller, query: { limit, offset, ...filters } }) {
      const { organizationId } = caller;
      const columns = ["id", "uid", "title", "blueprintId", "isSystem", "createdAt"] as const;
      const apps = findApps(deps.db, caller, filters).select(columns);
      const { items, total } = await listPage(apps, { limit, offset });
      if (items.length === 0) return { items: [], total };
      const ids = items.map((app) => app.id);
      const [channels, activity, problems] = await Promise.all([
        countChannels(deps, organizationId, ids),
        readAppActivity(deps.db, organizationId, ids, deps.clock() - RATE_MINUTES * MINUTE_MS),
        countProblems(deps, organizationId, ids),
      ]);
      const summaries = items.map(({ createdAt, ...app }): AppSummary => {
        const { lastAt, published } = activity(app.id);
        const { errors = 0, count: openProblems = 0 } = problems.get(app.id) ?? {};
        return {
          ...app,
          createdAt: formatTimestamp(createdAt.getTime()),
          ...channels(app.id),
          lastEventAt: lastAt && formatTimestamp(lastAt.getTime()),
          eventsPerMinute:
            published === undefined ? null : Math.round((published / RATE_MINUTES) * 100) / 100,
          openProblems,
          health: errors > 0 ? "error" : openProblems > 0 ? "warning" : "ok",
        };
      });
      return { items: summaries, total };
    },
  });

/** Counts the channels and the quarantined items of each app. */
async function countChannels(
  { db, quarantine }: Deps,
  organizationId: string,
  appIds: readonly string[],
): Promise<(appId: string) => Pick<AppSummary, "channels" | "quarantined">> {
  const rows = await db
    .selectFrom("channels")
    .select(["appId", "number"])
    .where("appId", "in", appIds)
    .execute();
  const numbers = rows.map(({ number }) => number);
  const held = await quarantine.countByChannel(organizationId, numbers).catch(() => undefined);
  const channels = Map.groupBy(rows, ({ appId }) => appId);
  return (appId) => {
    const own = channels.get(appId) ?? [];
    const quarantined = held && own.reduce((sum, { number }) => sum + (held.get(number) ?? 0), 0);
    return { channels: own.length, quarantined: quarantined ?? null };
  };
}

async function countProblems({ db, clock }: Deps, organizationId: string, appIds: readonly string[]) {
  const rows = await db
    .selectFrom("problems")
    .select(({ fn }) => [
      "appId",
      fn.countAll<number>().as("count"),
      fn.countAll<number>().filterWhere("severity", "=", "error").as("errors"),
    ])
    .where("organizationId", "=", organizationId)
    .where("state", "<>", "resolved")
    .where((eb) => eb.not(isMutedAt(clock())(eb)))
    .where("appId", "in", appIds)
    .groupBy("appId")
    .execute();
  return new Map(rows.map((row) => [row.appId, row]));
}
