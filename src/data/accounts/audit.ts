import { createId } from "../../lib/ids.ts";
import type { Queryable, Trx } from "../database.ts";
import { type AuditAction, type AuditEntry, type Author, channelName } from "./audit-entry.ts";

const MAX_FIELDS = 100;

/** Records who changes what, in the transaction of the change itself: neither stands without the other. */
export const recordAudit = (trx: Trx, author: Author, entry: AuditEntry, nowMs: number): Promise<void> =>
  recordAccess(trx, author, [entry], nowMs);

/**
 * Records what somebody is about to do that is no change in the database: to read what is kept, or to delete it from the bus. It comes
 * first: while it cannot be recorded, nothing is read and nothing is lost.
 *
 * @throws UnavailableError
 */
export async function recordAccess(
  db: Queryable,
  { organizationId, accountId, keyId, requestId }: Author,
  entries: readonly AuditEntry[],
  nowMs: number,
): Promise<void> {
  if (entries.length === 0) return;
  // Of one time, they are listed by their ids.
  const ids = entries.map(() => createId("aud", nowMs)).sort();
  const rows = entries.map(({ action, entity, id, fields = [] }, at) => ({
    id: ids[at] ?? createId("aud", nowMs),
    organizationId,
    accountId,
    keyId,
    requestId,
    action,
    entity,
    entityId: id,
    fields: fields.slice(0, MAX_FIELDS),
    createdAt: new Date(nowMs),
  }));
  await db.insertInto("audit").values(rows).execute();
}

/** The same of a channel. */
export const recordChannelAudit = (
  trx: Trx,
  author: Author,
  action: AuditAction,
  channel: { readonly appId: string; readonly uid: string },
  nowMs: number,
  fields: readonly string[] = [],
): Promise<void> =>
  recordAudit(trx, author, { action, entity: "channel", id: channelName(channel), fields }, nowMs);
