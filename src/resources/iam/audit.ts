import { z } from "zod";
import { AUDIT_ACTIONS, AUDIT_ENTITIES } from "../../data/accounts/audit-entry.ts";
import type { Queryable } from "../../data/database.ts";
import type { Row } from "../../data/tables.ts";
import type { Caller } from "../../http/context.ts";
import { id, timeInput, timestamp } from "../../http/fields.ts";
import { pageQuery } from "../../http/page.ts";
import { listOf, nonJsonAnswer } from "../kit/answer.ts";
import { listPage, mapPage } from "../kit/list-page.ts";
import type { Resource } from "../kit/resource.ts";
import { defineRoute } from "../kit/route.ts";
import { createSentences } from "./audit-sentence.ts";

const times = {
  from: timeInput.optional().describe("Selects records created at or after this time."),
  to: timeInput.optional().describe("Selects records created before this time."),
};
const filters = z.object({
  entity: z
    .enum(AUDIT_ENTITIES)
    .optional()
    .describe("The kind of the resource that was changed, read or issued."),
  entityId: z.string().min(1).max(255).optional(),
  accountId: z.string().min(1).max(255).optional().describe("The account that made the request."),
  ...times,
});

const auditRecord = z
  .object({
    id: id("aud"),
    organizationId: id("org"),
    accountId: z.string().nullable().meta({
      description: "The account that made the change. `null` for the operator's declarative configuration.",
    }),
    keyId: z.string().nullable().meta({ description: "The API key. `null` if the request used no API key." }),
    action: z.enum(AUDIT_ACTIONS),
    entity: z.enum(AUDIT_ENTITIES),
    entityId: z.string().meta({
      description:
        "The id of the resource. A channel's own id is a credential, so the record holds its app's id and its uid. An event is identified by topic and entry, an access token by its key, and a list of dead letters by its subscription.",
      example: "app_01jc9x2k4v8m3n5p7q9r1s0/hooks",
    }),
    fields: z.array(z.string()).meta({
      description: "The names of the changed fields. Values are never recorded.",
      example: ["title", "config.dedupe"],
    }),
    requestId: z
      .string()
      .nullable()
      .meta({ description: "The request id, as in the header `X-Request-Id` and in the log." }),
    sentence: z.string().meta({
      description:
        "The action in one sentence, with the present names of the account and the resource. A deleted resource is named by its id.",
      example: "Ada revoked the API key 'ci'.",
    }),
    at: timestamp,
  })
  .meta({ id: "AuditRecord", description: "One recorded action of an account." });

const refusalRecord = z
  .object({
    hour: timestamp.meta({ description: "The start of the hour in which the requests were counted." }),
    organizationId: z.string().nullable().meta({
      description:
        "`null` if the token belongs to no known organization. Only the operator's organization sees these records.",
    }),
    accountId: z.string().nullable(),
    keyId: z.string().nullable(),
    address: z.string().meta({
      description:
        "The client's address. For an unknown caller with IPv6, the /64 network. `others` if the hour had too many different callers to list each one.",
      example: "192.0.2.1",
    }),
    status: z.int().meta({
      description: "401 if the caller is unknown, 403 if the caller lacks a permission.",
      example: 401,
    }),
    count: z.int(),
    lastAt: timestamp,
  })
  .meta({ id: "AuditRejection", description: "Requests of one caller that were rejected within one hour." });

const BATCH = 500;

export const audit: Resource = {
  tag: "Audit",
  routes: ({ db, refusals }) => [
    defineRoute({
      at: "GET /audit",
      operation: "listAudit",
      summary: "List audit records",
      description:
        "Every change of the organization's resources, oldest first. Each record is written in the transaction of the change. Records also cover deleted events, access to quarantined items and dead letters, replayed events and issued tokens. A record has field names, never values. `INLET_AUDIT_RETENTION_DAYS` sets how long records are retained.",
      query: filters.extend(pageQuery),
      answer: listOf(auditRecord),
      async handle({ caller, query: { limit, offset, ...wanted } }) {
        const page = await listPage(recordsOf(db, caller, wanted), { limit, offset });
        const sentenceOf = await createSentences(db, caller.organizationId, page.items);
        return mapPage(page, (row) => render(row, sentenceOf));
      },
    }),
    defineRoute({
      at: "GET /audit/export",
      operation: "exportAudit",
      summary: "Export audit records",
      description:
        "All records that match the filters, oldest first, without a limit. Each line is one JSON object as in `listAudit`. If the export ends early, use the `at` of the last line as `from` of the next call.",
      query: filters,
      answer: nonJsonAnswer("application/x-ndjson", "The audit records, one JSON object per line."),
      async handle({ caller, query }) {
        const lines = ReadableStream.from(exportLines(db, caller, query)).pipeThrough(
          new TextEncoderStream(),
        );
        return new Response(lines, { headers: { "content-type": "application/x-ndjson" } });
      },
    }),
    defineRoute({
      at: "GET /audit/rejections",
      operation: "listRejections",
      summary: "Count rejected requests",
      description:
        "Requests to the management API that were rejected with 401 or 403, counted by hour, caller and address, newest first. Requests that other gateways rejected appear within ten seconds.",
      query: z.object({ ...times, ...pageQuery }),
      answer: listOf(refusalRecord),
      async handle({ caller, query: { from, to, limit, offset } }) {
        await refusals.write();
        const operators = db.selectFrom("cluster").select("organizationId");
        let found = db
          .selectFrom("auditRefusals")
          .where((eb) =>
            eb.or([
              eb("organizationId", "=", caller.organizationId),
              eb.and([eb("organizationId", "=", ""), eb(eb.val(caller.organizationId), "=", operators)]),
            ]),
          );
        if (from !== undefined) found = found.where("lastAt", ">=", new Date(from));
        if (to !== undefined) found = found.where("hour", "<", new Date(to));
        const newest = found.selectAll().orderBy("hour", "desc").orderBy("count", "desc");
        const page = await listPage(newest, { limit, offset }, ["address", "keyId", "status"]);
        return mapPage(page, ({ hour, lastAt, organizationId, accountId, keyId, ...row }) => ({
          ...row,
          organizationId: organizationId || null,
          accountId: accountId || null,
          keyId: keyId || null,
          hour: hour.toISOString(),
          lastAt: lastAt.toISOString(),
        }));
      },
    }),
  ],
};

type Filters = z.output<typeof filters>;

function recordsOf(db: Queryable, caller: Caller, { entity, entityId, accountId, from, to }: Filters) {
  let found = db.selectFrom("audit").selectAll().where("organizationId", "=", caller.organizationId);
  if (entity !== undefined) found = found.where("entity", "=", entity);
  if (entityId !== undefined) found = found.where("entityId", "=", entityId);
  if (accountId !== undefined) found = found.where("accountId", "=", accountId);
  if (from !== undefined) found = found.where("createdAt", ">=", new Date(from));
  if (to !== undefined) found = found.where("createdAt", "<", new Date(to));
  return found;
}

const render = (row: Row<"audit">, sentenceOf: (row: Row<"audit">) => string) => {
  const { createdAt, ...fields } = row;
  return { ...fields, sentence: sentenceOf(row), at: createdAt.toISOString() };
};

/** Yields the audit log as lines, one page at a time. The next page is read after the client has consumed the current page. */
async function* exportLines(db: Queryable, caller: Caller, wanted: Filters): AsyncGenerator<string> {
  const records = recordsOf(db, caller, wanted).orderBy("createdAt").orderBy("id").limit(BATCH);
  for (let last: Row<"audit"> | undefined; ; ) {
    const after = last;
    const page = await (after
      ? records.where(({ eb, refTuple, tuple }) =>
          eb(refTuple("createdAt", "id"), ">", tuple(after.createdAt, after.id)),
        )
      : records
    ).execute();
    const sentenceOf = await createSentences(db, caller.organizationId, page);
    yield page.map((row) => `${JSON.stringify(render(row, sentenceOf))}\n`).join("");
    if (page.length < BATCH) return;
    last = page.at(-1);
  }
}
