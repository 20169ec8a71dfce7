import { recordAudit } from "../../../data/accounts/audit.ts";
import type { Author } from "../../../data/accounts/audit-entry.ts";
import { recordChange } from "../../../data/changes.ts";
import type { WriteContext } from "../../../data/channels/channels.ts";
import type { Queryable, Trx } from "../../../data/database.ts";
import { recordRemovals } from "../../../data/removals.ts";
import { handlerSecretPlace } from "../../../data/subscriptions/handlers.ts";
import { listCoverage, type SubscriptionRow } from "../../../data/subscriptions/subscriptions.ts";
import type { HandlerSettings } from "../../../event/handler.ts";
import { conflict, notFound } from "../../../http/errors.ts";
import type { Listed, Page } from "../../../http/page.ts";
import { createId } from "../../../lib/ids.ts";
import type { AppScope } from "../../apps/app-scope.ts";
import type { Deps } from "../../kit/deps.ts";
import { listPage } from "../../kit/list-page.ts";
import { connectCovered, noChannels } from "./connect.ts";
import { type HandlerInput, requireHandlerConnection, settingsOf } from "./handler.ts";
import { type EventUid, formatEventUid, formatStartAt, type StartAt } from "./schema.ts";

export interface NewSubscription {
  readonly eventUid: EventUid;
  readonly startAt: StartAt;
  /** Start position as Redis time in ms. 0 starts at the earliest entry. */
  readonly startMs: number;
  readonly connectionId: string | null;
  readonly handler: (HandlerInput & { readonly secret: string }) | null;
  /** JSON Schema of the events that the handler gets. `undefined` if it gets all events. */
  readonly when: HandlerSettings["when"];
}

export interface Subscription {
  readonly row: SubscriptionRow;
  readonly topics: readonly string[];
}

const MAX_TOPICS = 1_000;

/**
 * Inserts a subscription. The app and the channel are locked against deletion until the transaction ends.
 *
 * @throws ApiError 404 when the app, channel or definition does not exist
 * @throws ApiError 409 for `*` when the app has no channels, or when more than 1,000 topics would be covered
 * @throws ApiError as `connectCovered` does
 */
export async function insertSubscription(
  trx: Trx,
  author: Author,
  scope: AppScope,
  { eventUid, startAt, startMs, connectionId, handler, when }: NewSubscription,
  { channelKinds, keyring, nowMs, requireRoom }: WriteContext & Pick<Deps, "channelKinds" | "requireRoom">,
): Promise<Subscription & { readonly connected: readonly string[] }> {
  const { organizationId, appId } = scope;
  const app = await trx
    .selectFrom("apps")
    .select("id")
    .where((eb) => eb.and({ id: appId, organizationId }))
    .forKeyShare()
    .executeTakeFirst();
  if (!app) throw notFound("app");
  const inside = { table: "apps", column: "appId" };
  const counted = { table: "subscriptions", words: "subscriptions", inside, omitsAgents: true } as const;
  await requireRoom(trx, { organizationId }, counted);
  // Run this before `requireTarget`. Both lock the channel, and the stronger lock must be taken first.
  const connected =
    connectionId === null
      ? []
      : await connectCovered(trx, author, scope, { eventUid, connectionId }, { channelKinds, nowMs });
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
      handler: handler && JSON.stringify({ ...settingsOf(handler), when }),
      sealedHandlerSecret: handler && keyring.seal(handler.secret, handlerSecretPlace(id)),
      createdAt: new Date(nowMs),
      updatedAt: new Date(nowMs),
    })
    .returningAll()
    .executeTakeFirstOrThrow();
  const subscription = await withTopics(trx, row);
  if (subscription.topics.length > MAX_TOPICS) {
    throw conflict(
      `A subscription can cover at most ${MAX_TOPICS} topics, and this one would cover ${subscription.topics.length}. Subscribe to single channels or event types instead.`,
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

/** Lists subscriptions in order of creation, then id. */
export async function listSubscriptions(
  db: Queryable,
  scope: AppScope,
  page: Page,
): Promise<Listed<Subscription>> {
  const { items, total } = await listPage(ofApp(db, scope).selectAll(), page);
  const ids = items.map(({ id }) => id);
  const coverage = await listCoverage(db, ids);
  return { items: items.map((row) => ({ row, topics: topicsOf(coverage, row) })), total };
}

/** Reads a subscription. @throws ApiError 404 if the app has no such subscription */
export async function getSubscription(db: Queryable, scope: AppScope, id: string): Promise<Subscription> {
  const row = await ofApp(db, scope).selectAll().where("id", "=", id).executeTakeFirst();
  if (!row) throw notFound("subscription");
  return withTopics(db, row);
}

/** Deletes a subscription, and records which consumer groups must later be removed from Redis. @throws ApiError 404 */
export async function deleteSubscription(
  trx: Trx,
  author: Author,
  scope: AppScope,
  id: string,
  nowMs: number,
): Promise<void> {
  const { numDeletedRows } = await trx
    .deleteFrom("subscriptions")
    .where((eb) => eb.and({ ...scope, id }))
    .executeTakeFirst();
  if (numDeletedRows === 0n) throw notFound("subscription");
  const { organizationId } = scope;
  await recordChange(trx, { kind: "subscription", key: id });
  await recordRemovals(trx, [{ kind: "subscription", id, organizationId }], nowMs);
  await recordAudit(trx, author, { action: "delete", entity: "subscription", id }, nowMs);
}

export type SubscriptionStep =
  | { readonly action: "pause"; readonly state: "paused" }
  | { readonly action: "resume"; readonly state: "active" }
  | { readonly action: "rewind"; readonly startAt: string; readonly startMs: number };

/**
 * Updates the row of a subscription. The caller must then update the consumer groups in Redis.
 * @throws ApiError 404 if it does not exist; 409 if it is already in the requested state
 */
export async function updateSubscription(
  trx: Trx,
  author: Author,
  scope: AppScope,
  id: string,
  { action, ...values }: SubscriptionStep,
  nowMs: number,
): Promise<Subscription> {
  const before = await ofApp(trx, scope).select("state").where("id", "=", id).forUpdate().executeTakeFirst();
  if (!before) throw notFound("subscription");
  if ("state" in values && before.state === values.state)
    throw conflict(`The subscription is already ${values.state}.`);
  const row = await trx
    .updateTable("subscriptions")
    .set({ ...values, updatedAt: new Date(nowMs) })
    .where("id", "=", id)
    .returningAll()
    .executeTakeFirstOrThrow();
  await recordChange(trx, { kind: "subscription", key: id });
  await recordAudit(trx, author, { action, entity: "subscription", id }, nowMs);
  return withTopics(trx, row);
}

const ofApp = (db: Queryable, scope: AppScope) =>
  db
    .selectFrom("subscriptions")
    .where((eb) => eb.and({ ...scope }))
    .where("agent", "is", null);

async function withTopics(db: Queryable, row: SubscriptionRow): Promise<Subscription> {
  const coverage = await listCoverage(db, [row.id]);
  return { row, topics: topicsOf(coverage, row) };
}

const topicsOf = (coverage: Awaited<ReturnType<typeof listCoverage>>, { id }: SubscriptionRow) =>
  (coverage.get(id) ?? []).map(({ topic }) => topic);
