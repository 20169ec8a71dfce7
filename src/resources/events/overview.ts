import { z } from "zod";
import { type Backlog, readBacklogs } from "../../bus/groups/subscription-groups.ts";
import { isMutedAt } from "../../data/problems/problems.ts";
import { listCoverage } from "../../data/subscriptions/subscriptions.ts";
import { DELIVERY_STATUSES } from "../../event/delivery-record.ts";
import type { Deps } from "../kit/deps.ts";
import { countRows } from "../kit/list-page.ts";
import type { Resource } from "../kit/resource.ts";
import { defineRoute } from "../kit/route.ts";
import { appFigures } from "./app-figures.ts";

const HOUR_MS = 3_600_000;
/** Maximum number of channels for delivery figures. With more channels, the figures are null, because computing them would be slow. */
const MAX_CHANNELS = 1_000;
const MAX_SUBSCRIPTIONS = 500;
const MAX_TIMED = 500;

const overviewSchema = z
  .object({
    bus: z.object({
      ready: z.boolean().meta({ description: "Whether events can be published." }),
      durability: z.string().meta({
        description:
          "Failures that acknowledged events survive: `none`, `process` (a crash of Redis), `fsync` (a crash of the machine that runs Redis) or `replica` (loss of the primary).",
        example: "fsync",
      }),
      memoryUsedFraction: z
        .number()
        .nullable()
        .meta({ description: "Used fraction of Redis memory, from 0 to 1." }),
    }),
    deliveries: z
      .object({
        byStatus: z.array(z.object({ status: z.enum(DELIVERY_STATUSES), count: z.int() })),
        medianMs: z.int().nullable(),
        p99Ms: z.int().nullable(),
      })
      .nullable()
      .meta({
        description: `Figures from the sampled deliveries of the last hour, at most one per second and channel. The durations cover the newest ${MAX_TIMED}. Null if there are more than ${MAX_CHANNELS} channels.`,
      }),
    subscriptions: z.object({
      total: z.int(),
      lag: z
        .int()
        .nullable()
        .meta({
          description: `Number of entries not delivered to a reader yet. Null if unknown, or with more than ${MAX_SUBSCRIPTIONS} subscriptions.`,
        }),
      lagSeconds: z
        .number()
        .nullable()
        .meta({ description: "Age of the oldest entry not delivered yet, in seconds." }),
      pending: z
        .int()
        .nullable()
        .meta({ description: "Number of entries delivered but not acknowledged yet." }),
    }),
    deadLetters: z.int(),
    openProblems: z.int().meta({ description: "Number of open problems, without muted ones." }),
    mutedProblems: z.int().meta({ description: "Number of open problems that are muted." }),
  })
  .meta({ id: "Overview", description: "Current figures of the organization's event flow." });

export const overview: Resource = {
  tag: "Problems",
  routes: (deps) => [
    defineRoute({
      at: "GET /overview",
      operation: "getOverview",
      summary: "Get the key figures of the organization",
      answer: overviewSchema,
      async handle({ caller: { organizationId } }) {
        const { db, redis } = deps;
        const nowMs = deps.clock();
        const openOnes = db
          .selectFrom("problems")
          .where("organizationId", "=", organizationId)
          .where("resolvedAt", "is", null);
        const { ready, durability, memoryUsedFraction = null } = redis.state();
        const [deliveries, subscriptions, deadLetters, openProblems, mutedProblems] = await Promise.all([
          deliveriesOf(deps, organizationId),
          subscriptionsOf(deps, organizationId),
          countRows(db.selectFrom("deadLetters").where("organizationId", "=", organizationId)),
          countRows(openOnes.where((eb) => eb.not(isMutedAt(nowMs)(eb)))),
          countRows(openOnes.where(isMutedAt(nowMs))),
        ]);
        return {
          bus: { ready, durability, memoryUsedFraction },
          deliveries,
          subscriptions,
          deadLetters,
          openProblems,
          mutedProblems,
        };
      },
    }),
    appFigures(deps),
  ],
};

async function deliveriesOf({ db, deliveryRecords, clock }: Deps, organizationId: string) {
  const channels = await db
    .selectFrom("channels")
    .select("number")
    .where("organizationId", "=", organizationId)
    .limit(MAX_CHANNELS + 1)
    .execute();
  if (channels.length > MAX_CHANNELS) return null;
  const numbers = channels.map(({ number }) => number);
  const listed = await deliveryRecords.list(organizationId, numbers, { fromMs: clock() - HOUR_MS });
  const newest = listed.slice(-MAX_TIMED).map(({ id }) => id);
  const times = (await deliveryRecords.read(organizationId, newest))
    .filter(({ httpStatus }) => httpStatus !== null)
    .map(({ durationMs }) => durationMs)
    .sort((a, b) => a - b);
  const at = (part: number): number | null => times[Math.floor((times.length - 1) * part)] ?? null;
  const byStatus = [...Map.groupBy(listed, ({ status }) => status)].map(([status, of]) => ({
    status,
    count: of.length,
  }));
  return { byStatus, medianMs: at(0.5), p99Ms: at(0.99) };
}

async function subscriptionsOf(deps: Deps, organizationId: string) {
  const rows = await deps.db
    .selectFrom("subscriptions")
    .select("id")
    .where("organizationId", "=", organizationId)
    .where("agent", "is", null)
    .execute();
  const ids = rows.map(({ id }) => id);
  const total = ids.length;
  if (total > MAX_SUBSCRIPTIONS) return { total, lag: null, lagSeconds: null, pending: null };
  const coverage = await listCoverage(deps.db, ids);
  const wanted = ids.map((id) => ({ id, topics: (coverage.get(id) ?? []).map(({ topic }) => topic) }));
  const backlogs = await readBacklogs(deps, wanted);
  const over = (of: keyof Backlog, join: (a: number, b: number) => number): number | null =>
    ids.reduce<number | null>((all, id) => {
      const one = backlogs.get(id)?.[of] ?? null;
      return all === null || one === null ? null : join(all, one);
    }, 0);
  const sum = (a: number, b: number): number => a + b;
  return {
    total,
    lag: over("lag", sum),
    lagSeconds: over("lagSeconds", Math.max),
    pending: over("pending", sum),
  };
}
