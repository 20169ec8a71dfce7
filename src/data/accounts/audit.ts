import { createId } from "../../lib/ids.ts";
import type { Queryable, Trx } from "../database.ts";
import { type AuditAction, type AuditEntry, type Author, channelName } from "./audit-entry.ts";

const MAX_FIELDS = 100;

/** Adds a change to the audit log in the transaction that makes the change, so that both commit together. */
export const recordAudit = (trx: Trx, author: Author, entry: AuditEntry, nowMs: number): Promise<void> =>
  recordAccess(trx, author, [entry], nowMs);

/**
 * Adds access to data outside the database, such as events in Redis, to the audit log. Call it before the access, so that no access
 * is missing from the log.
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
  // The audit log lists entries with the same time by id. Sorted ids therefore keep the entries in the given order.
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

export const recordChannelAudit = (
  trx: Trx,
  author: Author,
  action: AuditAction,
  channel: { readonly appId: string; readonly uid: string },
  nowMs: number,
  fields: readonly string[] = [],
): Promise<void> =>
  recordAudit(trx, author, { action, entity: "channel", id: channelName(channel), fields }, nowMs);
