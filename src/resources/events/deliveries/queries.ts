import type { ListedDelivery } from "../../../bus/deliveries/delivery-records.ts";
import type { DeliveryRecord, WholeDeliveryRecord } from "../../../event/delivery-record.ts";
import { notFound } from "../../../http/errors.ts";
import { formatCursor, type Listed, type Page, parseCursor } from "../../../http/page.ts";
import { findChannelNumbers, getChannel } from "../../apps/app-channel.ts";
import { type AppScope, requireApp } from "../../apps/app-scope.ts";
import { findPlaces } from "../../apps/organization-channels.ts";
import type { Deps } from "../../kit/deps.ts";
import { omitUndefined } from "../../kit/list-page.ts";
import type { Filters, NewestDeliveries } from "./schema.ts";

/** Number of newest records that a search by `eventId` reads. */
const MAX_SEARCHED = 2_000;

/** Lists the recorded deliveries of a channel or an app. @throws ApiError 404 if the app or channel does not exist */
export async function listDeliveries(
  { db, keyring, deliveryRecords }: Deps,
  scope: AppScope,
  filters: Filters,
  { limit, offset, order }: Page & { readonly order: "oldest" | "newest" },
): Promise<Listed<DeliveryRecord>> {
  const { organizationId } = scope;
  const { channel, status, requestId, eventId, from: fromMs, to: toMs } = filters;
  await requireApp(db, scope);
  const numbers =
    channel === undefined
      ? await findChannelNumbers(db, scope)
      : [(await getChannel(db, keyring, scope, channel)).number];
  const fits = (one: ListedDelivery): boolean =>
    (status === undefined || one.status === status) &&
    (requestId === undefined || one.requestId === requestId);
  const listed = await deliveryRecords.list(organizationId, numbers, omitUndefined({ fromMs, toMs }));
  const fitting = listed.filter(fits);
  const inOrder = (order === "newest" ? fitting.reverse() : fitting).map(({ id }) => id);
  if (eventId === undefined) {
    const items = await deliveryRecords.read(organizationId, inOrder.slice(offset, offset + limit));
    return { items, total: inOrder.length };
  }
  const newest = order === "newest" ? inOrder.slice(0, MAX_SEARCHED) : inOrder.slice(-MAX_SEARCHED);
  const read = await deliveryRecords.read(organizationId, newest);
  const found = read.filter((record) => hasEvent(record, eventId));
  return { items: found.slice(offset, offset + limit), total: found.length };
}

const hasEvent = ({ outcome }: DeliveryRecord, eventId: string): boolean =>
  outcome.events.some((event) => event.id === eventId || event.entryId === eventId);

/**
 * Lists the newest recorded deliveries of all apps. The work depends on the number of channels with records and on the page's size, and not
 * on the page's position. A filter by `eventId` searches the newest `MAX_SEARCHED` records.
 */
export async function listNewestDeliveries(
  deps: Deps,
  organizationId: string,
  { appId, channel, from, to, eventId, limit, cursor, status, requestId }: NewestDeliveries,
): Promise<Listed<DeliveryRecord>> {
  const { deliveryRecords } = deps;
  const channelNumbers = await findPlaces(deps, organizationId, { appId, channel });
  const query = { channelNumbers, from, to, status, requestId };
  const after = parseCursor(cursor);
  if (eventId !== undefined) {
    const { records } = await deliveryRecords.listNewest(organizationId, { ...query, limit: MAX_SEARCHED });
    const ids = records.map(({ id }) => id);
    const found = (await deliveryRecords.read(organizationId, ids)).filter((one) => hasEvent(one, eventId));
    const rest = found.filter((one) => isAfter(one, after));
    return { items: rest.slice(0, limit), total: found.length, next: nextOf(rest, limit) };
  }
  // One more than the page shows whether another page follows.
  const page = { ...query, limit: limit + 1, after };
  const { records, total } = await deliveryRecords.listNewest(organizationId, page);
  const ids = records.slice(0, limit).map(({ id }) => id);
  return { items: await deliveryRecords.read(organizationId, ids), total, next: nextOf(records, limit) };
}

interface Placed {
  readonly receivedAtMs: number;
  readonly id: string;
}

/** Returns whether a record comes after this position in a list with the newest record first. */
const isAfter = ({ receivedAtMs, id }: Placed, after: ReturnType<typeof parseCursor>): boolean =>
  after === undefined || receivedAtMs < after.score || (receivedAtMs === after.score && id < after.id);

/** Returns the cursor of the next page, or `undefined` if all records are on this page. */
function nextOf(records: readonly Placed[], limit: number): string | undefined {
  const last = records.length > limit ? records[limit - 1] : undefined;
  return last && formatCursor({ score: last.receivedAtMs, id: last.id });
}

/** Reads a recorded delivery. @throws ApiError 404 if the app has no such delivery */
export async function getDelivery(
  { db, deliveryRecords }: Deps,
  scope: AppScope,
  id: string,
): Promise<WholeDeliveryRecord> {
  const found = await deliveryRecords.find(scope.organizationId, id);
  const channels = found && (await findChannelNumbers(db, scope, { number: found.record.channelNumber }));
  if (!found || channels?.length !== 1) throw notFound("delivery");
  return found;
}
