import { sql } from "kysely";
import type { ChannelIdentity, ChannelKindName, ChannelState } from "../../event/channel.ts";
import { inPages } from "../../lib/pages.ts";
import type { Queryable } from "../database.ts";
import { TRIED_STATES } from "./channel-states.ts";

/** A channel that fetches, as far as it decides who runs it. */
export interface SourceRow extends ChannelIdentity {
  readonly version: number;
  readonly state: ChannelState;
  readonly connectionId: string | null;
  /** True where it should run, or be tried now and then: nothing of its own keeps it from it, and a subscription covers it (a paused one counts) or it always runs. */
  readonly isWanted: boolean;
}

const PAGE = 5_000;

/** All channels of these kinds, of all organizations, in the order of their numbers. */
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

/** The numbers of those of the channels that should fetch, by their subscriptions and their settings: a part of a query. */
export const wantedAmong = (db: Queryable, channelNumbers: readonly number[]) =>
  db
    .selectFrom("channels as c")
    .select("c.number")
    .where("c.number", "in", channelNumbers)
    .where(sql<boolean>`${isTried} AND ${isAskedFor}`);

/** Notes that a source has begun to run, so that Redis must know where it stands. */
export async function noteBegun(db: Queryable, channelNumber: number): Promise<void> {
  await db
    .updateTable("channels")
    .set({ hasBegun: true })
    .where("number", "=", channelNumber)
    .where("hasBegun", "=", false)
    .execute();
}

/** Of these channels, those that are active and yet fetch nothing: no subscription covers them. */
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

/** A channel's uid holds no colon. */
const isAskedFor = sql<boolean>`(
  (c.connection_id IS NOT NULL OR c.config->>'connection' IS DISTINCT FROM 'required')
  AND (c.config->>'run' = 'always' OR EXISTS (
    SELECT FROM subscriptions AS s
    WHERE s.app_id = c.app_id AND (s.event_uid = '*' OR split_part(s.event_uid, ':', 1) = c.uid))))`;

/** The settings, without the secret ones, of those of the channels that are there. */
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

/** A channel that says how often an event should come. */
export interface ExpectedChannel extends Omit<ChannelIdentity, "kind"> {
  readonly expectEverySeconds: number;
  /** When it was last written: before that nothing is held against it. */
  readonly updatedAt: Date;
  readonly topics: readonly string[];
}

/** Active channels of any kind that say how often an event should come, after the given number. */
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
