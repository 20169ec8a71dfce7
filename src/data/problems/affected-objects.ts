import { sql } from "kysely";
import type { ChannelState } from "../../event/channel.ts";
import type { ProblemAbout } from "../../event/problem.ts";
import type { Queryable } from "../database.ts";
import type { RegistrationFailure, RegistrationState } from "../registrations/registration-table.ts";
import type { HandlerError } from "../tables.ts";

export interface Named {
  readonly organizationId: string;
  readonly subject: string;
  readonly about: ProblemAbout;
}

export const ofOrganization = (id: string): Named => ({ organizationId: id, subject: id, about: {} });

export const ofIntake = (intake: {
  readonly organizationId: string;
  readonly blueprintId: string;
  readonly uid: string;
  readonly title: string;
}): Named => ({
  organizationId: intake.organizationId,
  subject: `${intake.blueprintId}/intake`,
  about: { blueprint: { id: intake.blueprintId, uid: intake.uid, title: intake.title } },
});

/** Maximum number of reported objects per organization. Objects with the lowest ids are reported first. */
const MOST = 1_000;

interface ChannelNames {
  readonly organizationId: string;
  readonly number: number;
  readonly uid: string;
  readonly title: string | null;
  readonly appId: string;
  readonly appUid: string;
  readonly appTitle: string;
  /** Whether the channel is an intake. If so, the names of the app are those of its blueprint. */
  readonly isIntake: boolean;
}

function namedChannel(row: ChannelNames): Named {
  const { organizationId, appId, appUid: uid, appTitle: title } = row;
  if (row.isIntake) return ofIntake({ organizationId, blueprintId: appId, uid, title });
  return {
    organizationId,
    subject: `${appId}/${row.uid}`,
    about: { app: appOf(row), channel: { uid: row.uid, title: row.title } },
  };
}

const appOf = (row: Pick<SubscriptionNames, "appId" | "appUid" | "appTitle">) => ({
  id: row.appId,
  uid: row.appUid,
  title: row.appTitle,
});

const channelNames = sql`
  SELECT c.organization_id, c.number, c.uid, c.title, c.app_id, c.state, b.id IS NOT NULL AS is_intake,
    coalesce(a.uid, b.uid) AS app_uid, coalesce(a.title, b.title) AS app_title,
    row_number() OVER (PARTITION BY c.organization_id ORDER BY c.number) AS place
  FROM channels AS c LEFT JOIN apps AS a ON a.id = c.app_id LEFT JOIN blueprints AS b ON b.id = c.app_id`;

/** Returns names and organizations of channels by their internal id. Deleted channels are omitted. */
export async function nameChannels(
  db: Queryable,
  numbers: readonly number[],
): Promise<ReadonlyMap<number, Named>> {
  if (numbers.length === 0) return new Map();
  const { rows } = await sql<ChannelNames>`${channelNames} WHERE c.number = ANY(${[...numbers]})`.execute(db);
  return new Map(rows.map((row) => [Number(row.number), namedChannel(row)]));
}

export interface StoppedChannel extends Named {
  readonly number: number;
  readonly state: ChannelState;
}

export async function listStoppedChannels(db: Queryable): Promise<readonly StoppedChannel[]> {
  const { rows } = await sql<ChannelNames & { readonly state: ChannelState }>`
    SELECT * FROM (${channelNames}
      WHERE c.state IN ('error', 'needsReauth', 'needsSetup', 'needsConnection')) AS found
    WHERE place <= ${MOST} ORDER BY number`.execute(db);
  return rows.map((row) => ({ ...namedChannel(row), number: Number(row.number), state: row.state }));
}

interface SubscriptionNames {
  readonly id: string;
  readonly organizationId: string;
  readonly eventUid: string;
  readonly appId: string;
  readonly appUid: string;
  readonly appTitle: string;
}

const namedSubscription = (row: SubscriptionNames): Named => ({
  organizationId: row.organizationId,
  subject: row.id,
  about: { app: appOf(row), subscription: { id: row.id, eventUid: row.eventUid } },
});

const subscriptionNames = sql`
  SELECT s.id, s.organization_id, s.event_uid, s.app_id, s.state, s.handler_error, a.uid AS app_uid, a.title AS app_title,
    row_number() OVER (PARTITION BY s.organization_id ORDER BY s.id) AS place
  FROM subscriptions AS s JOIN apps AS a ON a.id = s.app_id`;

export interface FailingHandler extends Named {
  /** True if the handler responded 410 Gone, which pauses the subscription. */
  readonly isGone: boolean;
  readonly error: HandlerError | null;
}

export async function listFailingHandlers(db: Queryable): Promise<readonly FailingHandler[]> {
  const { rows } = await sql<
    SubscriptionNames & { readonly state: string; readonly handlerError: HandlerError | null }
  >`
    SELECT * FROM (${subscriptionNames} WHERE s.handler IS NOT NULL AND (
      (s.state = 'active' AND s.handler_failing) OR (s.state = 'paused' AND s.handler_error->>'status' = '410')
    )) AS found
    WHERE place <= ${MOST} ORDER BY id`.execute(db);
  return rows.map((row) => ({
    ...namedSubscription(row),
    isGone: row.state === "paused",
    error: row.handlerError,
  }));
}

export async function listAtRisk(db: Queryable): Promise<readonly Named[]> {
  const { rows } = await sql<SubscriptionNames>`
    SELECT * FROM (${subscriptionNames} WHERE s.retention_at_risk AND s.state = 'active') AS found
    WHERE place <= ${MOST} ORDER BY id`.execute(db);
  return rows.map(namedSubscription);
}

/** Returns those of the given subscriptions that are active, keyed by id. Returns at most `MOST` of each organization. */
export async function nameActive(db: Queryable, ids: readonly string[]): Promise<ReadonlyMap<string, Named>> {
  if (ids.length === 0) return new Map();
  const { rows } = await sql<SubscriptionNames>`
    SELECT * FROM (${subscriptionNames} WHERE s.state = 'active' AND s.id = ANY(${[...ids]})) AS found
    WHERE place <= ${MOST}`.execute(db);
  return new Map(rows.map((row) => [row.id, namedSubscription(row)]));
}

export async function listTroubledConnections(
  db: Queryable,
): Promise<readonly (Named & { readonly state: "needsReauth" | "error" })[]> {
  const { rows } = await sql<{
    readonly id: string;
    readonly organizationId: string;
    readonly name: string;
    readonly state: "needsReauth" | "error";
  }>`
    SELECT id, organization_id, name, state FROM (
      SELECT *, row_number() OVER (PARTITION BY organization_id ORDER BY id) AS place
      FROM connections WHERE state <> 'ok'
    ) AS found
    WHERE place <= ${MOST} ORDER BY id`.execute(db);
  return rows.map(({ id, organizationId, name, state }) => ({
    organizationId,
    subject: id,
    state,
    about: { connection: { id, name } },
  }));
}

export interface TroubledRegistration extends Named {
  readonly id: string;
  readonly preset: string;
  readonly target: string;
  readonly state: RegistrationState;
  readonly lapsedAt: Date | null;
  readonly lastError: RegistrationFailure | null;
}

/** Lists registrations that lapsed or whose last request failed. */
export async function listTroubledRegistrations(db: Queryable): Promise<readonly TroubledRegistration[]> {
  const { rows } = await sql<
    Omit<TroubledRegistration, keyof Named> & ChannelNames & { readonly appTitle: string | null }
  >`
    SELECT * FROM (
      SELECT r.id, r.preset, r.target, r.state, r.lapsed_at, r.last_error, r.organization_id, r.app_id,
        r.channel_uid AS uid, c.title, a.uid AS app_uid, a.title AS app_title,
        row_number() OVER (PARTITION BY r.organization_id ORDER BY r.id) AS place
      FROM registrations AS r
        LEFT JOIN apps AS a ON a.id = r.app_id
        LEFT JOIN channels AS c ON c.number = r.channel_number
      WHERE r.lapsed_at IS NOT NULL OR r.failures > 0
    ) AS found
    WHERE place <= ${MOST} ORDER BY id`.execute(db);
  return rows.map((row) => {
    const { id, preset, target, state, lapsedAt, lastError, organizationId, appId, uid, title } = row;
    const about = { ...(row.appTitle !== null && { app: appOf(row) }), channel: { uid, title } };
    const subject = state === "removing" ? id : `${appId}/${uid}`;
    return { id, preset, target, state, lapsedAt, lastError, organizationId, subject, about };
  });
}

/** Lists the organizations that had a channel when Redis lost data, if that was noticed within a day. */
export async function listDataLoss(db: Queryable): Promise<readonly (Named & { readonly lostAt: Date })[]> {
  const { rows } = await sql<{ id: string; lostAt: Date }>`
    SELECT o.id, cluster.data_lost_at AS lost_at FROM cluster JOIN organizations AS o ON EXISTS (
      SELECT FROM channels AS c
      WHERE c.organization_id = o.id AND NOT c.is_system AND c.created_at < cluster.data_lost_at
    )
    WHERE cluster.data_lost_at > clock_timestamp() - interval '1 day'`.execute(db);
  return rows.map(({ id, lostAt }) => ({ ...ofOrganization(id), lostAt }));
}

/** Returns the organization that runs the gateway. `undefined` before the first start. */
export async function findOperator(db: Queryable): Promise<Named | undefined> {
  const cluster = await db.selectFrom("cluster").select("organizationId").executeTakeFirst();
  return cluster?.organizationId ? ofOrganization(cluster.organizationId) : undefined;
}
