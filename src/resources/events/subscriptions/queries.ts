import type { EntityDeps } from "../../../channels/entity.ts";
import { recordAudit } from "../../../data/accounts/audit.ts";
import type { Author } from "../../../data/accounts/audit-entry.ts";
import { recordChange } from "../../../data/changes.ts";
import type { Queryable, Trx } from "../../../data/database.ts";
import type { Keyring } from "../../../data/keyring/keyring.ts";
import { recordRemovals } from "../../../data/removals.ts";
import { handlerSecretPlace } from "../../../data/subscriptions/handlers.ts";
import { listCoverage, type SubscriptionRow } from "../../../data/subscriptions/subscriptions.ts";
import type { Listed, Page } from "../../../http/page.ts";
import { conflict, notFound } from "../../../http/problem.ts";
import { createId } from "../../../lib/ids.ts";
import type { AppScope } from "../../apps/app-scope.ts";
import { connectCovered, noChannels } from "./connect.ts";
import { type HandlerInput, requireHandlerConnection, settingsOf } from "./handler.ts";
import { type EventUid, formatEventUid, formatStartAt, type StartAt } from "./schema.ts";

export interface NewSubscription {
  readonly eventUid: EventUid;
  readonly startAt: StartAt;
  /** The start on the bus; 0 = earliest. */
  readonly startMs: number;
  readonly connectionId: string | null;
  readonly handler: (HandlerInput & { readonly secret: string }) | null;
}

/** A subscription with the topics that it covers now. */
export interface Subscription {
  readonly row: SubscriptionRow;
  readonly topics: readonly string[];
}

const MAX_TOPICS = 1_000;

/**
 * Writes a subscription of what is there at this moment: neither app nor channel can go between the look and the write.
 *
 * @throws ApiError 404 when app, channel or definition is not there, 409 for `*` without channels and beyond 1,000 topics; and
 * what `connectCovered` throws.
 */
export async function insertSubscription(
  trx: Trx,
  author: Author,
  { organizationId, appId }: AppScope,
  { eventUid, startAt, startMs, connectionId, handler }: NewSubscription,
  {
    channelKinds,
    keyring,
    nowMs,
  }: Pick<EntityDeps, "channelKinds"> & {
    readonly keyring: Keyring;
    readonly nowMs: number;
  },
): Promise<Subscription & { readonly connected: readonly string[] }> {
  const app = await trx
    .selectFrom("apps")
    .select("id")
    .where("id", "=", appId)
    .where("organizationId", "=", organizationId)
    .forKeyShare()
    .executeTakeFirst();
  if (!app) throw notFound("app");
  // First, for it takes the stronger lock on the channel.
  const connected =
    connectionId === null
      ? []
      : await connectCovered(
          trx,
          author,
          { organizationId, appId },
          { eventUid, connectionId },
          { channelKinds, nowMs },
        );
  await requireTarget(trx, appId, eventUid);
  if (handler !== null) await requireHandlerConnection(trx, organizationId, handler);
  const id = createId("sub", nowMs);
  const row = await trx
    .insertInto("subscriptions")
    .values({
      id,
      organizationId,
      appId,
      eventUid: formatEventUid(eventUid),
      connectionId,
      state: "active",
      startAt: formatStartAt(startAt),
      startMs,
      handler: handler && JSON.stringify(settingsOf(handler)),
      sealedHandlerSecret: handler && keyring.seal(handler.secret, handlerSecretPlace(id)),
      createdAt: new Date(nowMs),
      updatedAt: new Date(nowMs),
    })
    .returningAll()
    .executeTakeFirstOrThrow();
  const [subscription] = await withTopics(trx, [row]);
  if (!subscription) throw new Error("a subscription that was written cannot be read");
  if (subscription.topics.length > MAX_TOPICS) {
    throw conflict(
      `A subscription covers at most ${MAX_TOPICS} topics; this would be ${subscription.topics.length}.`,
    );
  }
  await recordChange(trx, { kind: "subscription", key: row.id });
  await recordAudit(trx, author, { action: "create", entity: "subscription", id: row.id }, nowMs);
  return { ...subscription, connected };
}

async function requireTarget(trx: Trx, appId: string, eventUid: EventUid): Promise<void> {
  let channels = trx
    .selectFrom("channels")
    .select("number")
    .where("appId", "=", appId)
    .limit(1)
    .forKeyShare();
  if (eventUid.kind !== "app") channels = channels.where("uid", "=", eventUid.channelUid);
  const channel = await channels.executeTakeFirst();
  if (!channel) {
    throw eventUid.kind === "app" ? noChannels() : notFound("channel");
  }
  if (eventUid.kind !== "type") return;
  const topic = await trx
    .selectFrom("topics")
    .select("topic")
    .where("channelNumber", "=", channel.number)
    .where("type", "=", eventUid.type)
    .where("retiredAt", "is", null)
    .executeTakeFirst();
  if (!topic) throw notFound("event definition");
}

/** In order of creation, then id. */
export async function listSubscriptions(
  db: Queryable,
  scope: AppScope,
  { limit, offset }: Page,
): Promise<Listed<Subscription>> {
  const ours = ofApp(db, scope);
  const { total } = await ours
    .select(({ fn }) => fn.countAll<number>().as("total"))
    .executeTakeFirstOrThrow();
  const rows = await ours
    .selectAll()
    .orderBy("createdAt")
    .orderBy("id")
    .limit(limit)
    .offset(offset)
    .execute();
  return { items: await withTopics(db, rows), total };
}

export async function findSubscription(
  db: Queryable,
  scope: AppScope,
  id: string,
): Promise<Subscription | undefined> {
  const [subscription] = await withTopics(
    db,
    await ofApp(db, scope).selectAll().where("id", "=", id).execute(),
  );
  return subscription;
}

/** Deletes the row and notes what it leaves on the bus; false where it is not there. */
export async function deleteSubscription(
  trx: Trx,
  author: Author,
  { organizationId, appId }: AppScope,
  id: string,
  nowMs: number,
): Promise<boolean> {
  const row = await trx
    .deleteFrom("subscriptions")
    .where("id", "=", id)
    .where("appId", "=", appId)
    .where("organizationId", "=", organizationId)
    .returning("id")
    .executeTakeFirst();
  if (!row) return false;
  await recordChange(trx, { kind: "subscription", key: id });
  await recordRemovals(trx, [{ kind: "subscription", id, organizationId }], nowMs);
  await recordAudit(trx, author, { action: "delete", entity: "subscription", id }, nowMs);
  return true;
}

/** What becomes of a subscription that stands. */
export type SubscriptionChange =
  | { readonly action: "pause" | "resume"; readonly state: "paused" | "active" }
  | {
      readonly action: "rewind";
      readonly startAt: string;
      readonly startMs: number;
      readonly state?: undefined;
    };

/** Changes the row; the bus is for the caller to bring in line. */
export async function updateSubscription(
  trx: Trx,
  author: Author,
  { organizationId, appId }: AppScope,
  id: string,
  { action, ...values }: SubscriptionChange,
  nowMs: number,
): Promise<Subscription | "missing" | "unchanged"> {
  const before = await trx
    .selectFrom("subscriptions")
    .select("state")
    .where("id", "=", id)
    .where("appId", "=", appId)
    .where("organizationId", "=", organizationId)
    .forUpdate()
    .executeTakeFirst();
  if (!before) return "missing";
  if (before.state === values.state) return "unchanged";
  const row = await trx
    .updateTable("subscriptions")
    .set({ ...values, updatedAt: new Date(nowMs) })
    .where("id", "=", id)
    .returningAll()
    .executeTakeFirstOrThrow();
  await recordChange(trx, { kind: "subscription", key: id });
  await recordAudit(trx, author, { action, entity: "subscription", id }, nowMs);
  const [subscription] = await withTopics(trx, [row]);
  if (!subscription) throw new Error("a subscription that was written cannot be read");
  return subscription;
}

const ofApp = (db: Queryable, { organizationId, appId }: AppScope) =>
  db.selectFrom("subscriptions").where("appId", "=", appId).where("organizationId", "=", organizationId);

async function withTopics(db: Queryable, rows: readonly SubscriptionRow[]): Promise<readonly Subscription[]> {
  const coverage = await listCoverage(
    db,
    rows.map(({ id }) => id),
  );
  return rows.map((row) => ({ row, topics: (coverage.get(row.id) ?? []).map(({ topic }) => topic) }));
}
