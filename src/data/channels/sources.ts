import { sql } from "kysely";
import type { ChannelIdentity, ChannelKindName, ChannelState } from "../../event/channel.ts";
import { inPages } from "../../lib/pages.ts";
import type { Queryable } from "../database.ts";
import { TRIED_STATES } from "./channel-states.ts";

export interface SourceRow extends ChannelIdentity {
  readonly version: number;
  readonly state: ChannelState;
  readonly connectionId: string | null;
  /**
   * Whether the source should run, or be retried. That depends on its state and its config. Unless the channel always runs, at
   * least one subscription, active or paused, must cover it or the channel that it reconciles.
   */
  readonly isWanted: boolean;
}

const PAGE = 5_000;

/** The result is ordered by internal channel id and spans all organizations. */
export async function listSources(
  db: Queryable,
  kinds: readonly ChannelKindName[],
): Promise<readonly SourceRow[]> {
  if (kinds.length === 0) return [];
  const all = db
    .selectFrom("channels as c")
    .select(["c.number", "c.uid", "c.kind", "c.appId", "c.organizationId"])
    .select(["c.version", "c.state", "c.connectionId"])
    .select(sql<boolean>`${isTried} AND ${isAskedFor}`.as("isWanted"))
    .where("c.kind", "in", kinds)
    .orderBy("c.number");
  const pages = inPages("number", 0, PAGE, (after, limit) =>
    all.where("c.number", ">", after).limit(limit).execute(),
  );
  return (await Array.fromAsync(pages)).flat();
}

export const wantedAmong = (db: Queryable, channelNumbers: readonly number[]) =>
  db
    .selectFrom("channels as c")
    .select("c.number")
    .where("c.number", "in", channelNumbers)
    .where(sql<boolean>`${isTried} AND ${isAskedFor}`);

/** Lists sources that publish the missed events of another channel, with the internal ids of both channels. */
export async function listReconcilingSources(
  db: Queryable,
): Promise<readonly { readonly number: number; readonly reconciled: number }[]> {
  return db
    .selectFrom("channels as c")
    .innerJoin("channels as w", (join) =>
      join.onRef("w.appId", "=", "c.appId").on(sql<boolean>`w.uid = c.config->>'reconciles'`),
    )
    .select(["c.number", "w.number as reconciled"])
    .where("c.state", "!=", "paused")
    .where(sql<boolean>`c.config->>'reconciles' IS NOT NULL`)
    .execute();
}

/** Records that a source has run. If its cursor is missing from Redis after that, the cursor was lost. */
export async function recordFirstRun(db: Queryable, channelNumber: number): Promise<void> {
  await db
    .updateTable("channels")
    .set({ hasBegun: true })
    .where("number", "=", channelNumber)
    .where("hasBegun", "=", false)
    .execute();
}

/** Returns those of the given channels that are active but do not run: no subscription covers them, or their connection is missing. */
export async function findIdleSources(
  db: Queryable,
  channelNumbers: readonly number[],
): Promise<ReadonlySet<number>> {
  if (channelNumbers.length === 0) return new Set();
  const rows = await db
    .selectFrom("channels as c")
    .select("c.number")
    .where("c.number", "in", channelNumbers)
    .where(sql<boolean>`c.state = 'active' AND NOT ${isAskedFor}`)
    .execute();
  return new Set(rows.map(({ number }) => number));
}

const isTried = sql<boolean>`c.state IN (${sql.join(TRIED_STATES)})`;

/**
 * SQL condition: the channel has its required connection, and either always runs or is covered by a subscription. `event_uid` can
 * be split at the colon, because the uid of a channel contains none.
 */
const isAskedFor = sql<boolean>`(
  (c.connection_id IS NOT NULL OR c.config->>'connection' IS DISTINCT FROM 'required')
  AND (c.config->>'run' = 'always' OR EXISTS (
    SELECT FROM subscriptions AS s
    WHERE s.app_id = c.app_id
      AND (s.event_uid = '*' OR split_part(s.event_uid, ':', 1) IN (c.uid, c.config->>'reconciles')))))`;

/** Returns the uids of the channels that find missed events of a webhook channel. */
export async function listReconciling(
  db: Queryable,
  { appId, uid }: Pick<ChannelIdentity, "appId" | "uid">,
): Promise<readonly string[]> {
  const rows = await db
    .selectFrom("channels")
    .select("uid")
    .where("appId", "=", appId)
    .where(sql<boolean>`config->>'reconciles' = ${uid}`)
    .execute();
  return rows.map((row) => row.uid);
}

/** Returns configs without secrets. The result omits deleted channels. */
export async function readSourceConfigs(
  db: Queryable,
  channelNumbers: readonly number[],
): Promise<ReadonlyMap<number, Readonly<Record<string, unknown>>>> {
  const configs = new Map<number, Readonly<Record<string, unknown>>>();
  for (let i = 0; i < channelNumbers.length; i += PAGE) {
    const rows = await db
      .selectFrom("channels")
      .select(["number", "config"])
      .where("number", "in", channelNumbers.slice(i, i + PAGE))
      .execute();
    for (const { number, config } of rows) configs.set(number, config);
  }
  return configs;
}

export interface ExpectedChannel extends Omit<ChannelIdentity, "kind"> {
  readonly expectEverySeconds: number;
  /** Time of the last change of the channel. Silence is counted from then at the earliest. */
  readonly updatedAt: Date;
  readonly topics: readonly string[];
}

export async function pageExpected(
  db: Queryable,
  page: { readonly after: number; readonly limit: number },
): Promise<readonly ExpectedChannel[]> {
  return db
    .selectFrom("channels as c")
    .select(["c.number", "c.uid", "c.appId", "c.organizationId", "c.updatedAt"])
    .select(sql<number>`(c.config->>'expectEverySeconds')::int`.as("expectEverySeconds"))
    .select(
      sql<string[]>`ARRAY(SELECT t.topic FROM topics AS t WHERE t.channel_number = c.number)`.as("topics"),
    )
    .where("c.number", ">", page.after)
    .where("c.state", "=", "active")
    .where(sql<boolean>`c.config->>'expectEverySeconds' IS NOT NULL`)
    .orderBy("c.number")
    .limit(page.limit)
    .execute();
}
