import { createId } from "../../lib/ids.ts";
import type { Trx } from "../database.ts";
import { type AuditAction, type AuditEntry, type Author, channelName } from "./audit-entry.ts";

const MAX_FIELDS = 100;

/** Records who changes what, in the transaction of the change itself: neither stands without the other. */
export async function recordAudit(trx: Trx, author: Author, entry: AuditEntry, nowMs: number): Promise<void> {
  const { organizationId, accountId, keyId, requestId } = author;
  const { action, entity, id, fields = [] } = entry;
  await trx
    .insertInto("audit")
    .values({
      id: createId("aud", nowMs),
      organizationId,
      accountId,
      keyId,
      requestId,
      action,
      entity,
      entityId: id,
      fields: fields.slice(0, MAX_FIELDS),
      createdAt: new Date(nowMs),
    })
    .execute();
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
