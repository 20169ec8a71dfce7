import { z } from "zod";
import { AUDIT_ACTIONS, AUDIT_ENTITIES } from "../../../data/accounts/audit-entry.ts";
import type { AuditRow } from "../../../data/tables.ts";
import { id, type Shown, timestamp } from "../../../http/fields.ts";
import { pageQuery } from "../../../http/page.ts";
import { formatTimestamp } from "../../../lib/clock.ts";

const time = z.iso
  .datetime({ offset: true, error: "must be an RFC 3339 time" })
  .transform((text) => new Date(text));

export const auditQuerySchema = z.object({
  entity: z.enum(AUDIT_ENTITIES).optional().describe("what was changed"),
  entityId: z.string().min(1).max(255).optional(),
  accountId: z.string().min(1).max(255).optional().describe("who changed it"),
  from: time.optional().describe("at this time or later"),
  to: time.optional().describe("before this time"),
  ...pageQuery,
});
export type AuditQuery = z.output<typeof auditQuerySchema>;

/** A change as the API answers it. */
export const auditRecordSchema = z
  .object({
    id: id("aud"),
    organizationId: id("org"),
    accountId: z
      .string()
      .nullable()
      .meta({ description: "Who; null: whoever runs the gateway, by a declared set-up." }),
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
export type AuditRecord = Shown<z.output<typeof auditRecordSchema>>;

export function renderAuditRecord({ createdAt, ...row }: AuditRow): AuditRecord {
  return { ...row, at: formatTimestamp(createdAt.getTime()) };
}
