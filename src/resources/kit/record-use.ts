import { recordAccess } from "../../data/accounts/audit.ts";
import type { AuditAction, AuditEntity, Author } from "../../data/accounts/audit-entry.ts";
import type { Deps } from "./deps.ts";

/** Adds the use of data outside the database to the audit log. Call it before the data is used. @throws UnavailableError */
export const recordUse = (
  { db, clock }: Deps,
  author: Author,
  action: AuditAction,
  entity: AuditEntity,
  ids: readonly string[],
): Promise<void> =>
  recordAccess(
    db,
    author,
    ids.map((id) => ({ action, entity, id })),
    clock(),
  );
