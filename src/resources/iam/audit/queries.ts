import type { Queryable } from "../../../data/database.ts";
import type { AuditRow } from "../../../data/tables.ts";
import type { Listed } from "../../../http/page.ts";
import { listPage } from "../../kit/list-page.ts";
import type { AuditQuery } from "./schema.ts";

/** An id that the organization knows nothing of is one that nothing was done by, or to. */
export function listAudit(
  db: Queryable,
  organizationId: string,
  { entity, entityId, accountId, from, to, ...page }: AuditQuery,
): Promise<Listed<AuditRow>> {
  let found = db.selectFrom("audit").selectAll().where("organizationId", "=", organizationId);
  if (entity !== undefined) found = found.where("entity", "=", entity);
  if (entityId !== undefined) found = found.where("entityId", "=", entityId);
  if (accountId !== undefined) found = found.where("accountId", "=", accountId);
  if (from !== undefined) found = found.where("createdAt", ">=", from);
  if (to !== undefined) found = found.where("createdAt", "<", to);
  return listPage(found, page);
}
