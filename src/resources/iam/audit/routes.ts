import { z } from "zod";
import { AUDIT_ACTIONS, AUDIT_ENTITIES } from "../../../data/accounts/audit-entry.ts";
import type { Queryable } from "../../../data/database.ts";
import { id, timestamp } from "../../../http/fields.ts";
import { pageQuery } from "../../../http/page.ts";
import { formatTimestamp } from "../../../lib/clock.ts";
import { listOf } from "../../kit/answer.ts";
import { listPage, mapPage } from "../../kit/list-page.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";

export interface AuditDeps {
  readonly db: Queryable;
}

const time = z.iso
  .datetime({ offset: true, error: "must be an RFC 3339 time" })
  .transform((text) => new Date(text));

const auditQuery = z.object({
  entity: z.enum(AUDIT_ENTITIES).optional().describe("what was changed"),
  entityId: z.string().min(1).max(255).optional(),
  accountId: z.string().min(1).max(255).optional().describe("who changed it"),
  from: time.optional().describe("at this time or later"),
  to: time.optional().describe("before this time"),
  ...pageQuery,
});

const auditRecord = z
  .object({
    id: id("aud"),
    organizationId: id("org"),
    accountId: z
      .string()
      .nullable()
      .meta({ description: "Who; null: the operator, by a declared set-up or on the gateway's machine." }),
    keyId: z.string().nullable().meta({ description: "The API key; null where none was used." }),
    action: z.enum(AUDIT_ACTIONS),
    entity: z.enum(AUDIT_ENTITIES),
    entityId: z.string().meta({
      description: "An id. A channel is named by its app's id and its uid: its own id is a credential.",
      example: "app_01jc9x2k4v8m3n5p7q9r1s0/hooks",
    }),
    fields: z.array(z.string()).meta({
      description: "The names of what was changed; never a value.",
      example: ["title", "config.dedupe"],
    }),
    requestId: z.string().nullable().meta({ description: "As in the header X-Request-Id and in the log." }),
    at: timestamp,
  })
  .meta({ id: "AuditRecord", description: "One change that somebody made." });

/** Who changed what. */
export const audit: Resource<AuditDeps> = {
  path: "/audit",
  tag: "Audit",
  routes: ({ db }) => [
    defineRoute(
      {
        method: "get",
        path: "/",
        operation: "listAudit",
        summary: "List who changed what",
        description:
          "Every change of what the organization has, oldest first, written together with the change itself. It names fields, never values.",
        query: auditQuery,
        answer: listOf(auditRecord),
      },
      async ({ caller, query: { entity, entityId, accountId, from, to, ...page } }) => {
        let found = db.selectFrom("audit").selectAll().where("organizationId", "=", caller.organizationId);
        if (entity !== undefined) found = found.where("entity", "=", entity);
        if (entityId !== undefined) found = found.where("entityId", "=", entityId);
        if (accountId !== undefined) found = found.where("accountId", "=", accountId);
        if (from !== undefined) found = found.where("createdAt", ">=", from);
        if (to !== undefined) found = found.where("createdAt", "<", to);
        return mapPage(await listPage(found, page), ({ createdAt, ...row }) => ({
          ...row,
          at: formatTimestamp(createdAt.getTime()),
        }));
      },
    ),
  ],
};
