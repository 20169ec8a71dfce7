import type { Queryable } from "../../../data/database.ts";
import { listOf } from "../../kit/answer.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { listAudit } from "./queries.ts";
import { auditQuerySchema, auditRecordSchema, renderAuditRecord } from "./schema.ts";

export interface AuditDeps {
  readonly db: Queryable;
}

/** Who changed what. */
export const audit: Resource<AuditDeps> = {
  path: "/audit",
  tag: "Audit",
  routes: (deps) => [
    defineRoute(
      {
        method: "get",
        path: "/",
        operation: "listAudit",
        summary: "List who changed what",
        description:
          "Every change of what the organization has, oldest first, written together with the change itself. It names fields, never values.",
        query: auditQuerySchema,
        answer: listOf(auditRecordSchema),
      },
      async ({ caller, query }) => {
        const { items, total } = await listAudit(deps.db, caller.organizationId, query);
        return { items: items.map(renderAuditRecord), total };
      },
    ),
  ],
};
