import { createId } from "../../lib/ids.ts";
import type { Trx } from "../database.ts";
import type { AuditEntry, Author } from "./audit-entry.ts";

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
