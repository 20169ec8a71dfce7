import { z } from "zod";
import { AUDIT_ACTIONS, AUDIT_ENTITIES } from "../../../data/accounts/audit-entry.ts";
import type { RefusalCounts } from "../../../data/accounts/refusals.ts";
import type { Queryable } from "../../../data/database.ts";
import type { Row } from "../../../data/tables.ts";
import type { Caller } from "../../../http/context.ts";
import { id, timeInput, timestamp } from "../../../http/fields.ts";
import { pageQuery } from "../../../http/page.ts";
import { listOf, nonJsonAnswer } from "../../kit/answer.ts";
import { listPage, mapPage } from "../../kit/list-page.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";

export interface AuditDeps {
  readonly db: Queryable;
  readonly refusals: Pick<RefusalCounts, "note" | "write">;
}

const times = {
  from: timeInput.optional().describe("at this time or later"),
  to: timeInput.optional().describe("before this time"),
};
const filters = z.object({
  entity: z.enum(AUDIT_ENTITIES).optional().describe("what was changed, read or given"),
  entityId: z.string().min(1).max(255).optional(),
  accountId: z.string().min(1).max(255).optional().describe("who did it"),
  ...times,
});

const auditRecord = z
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
      description:
        "An id. A channel is named by its app's id and its uid: its own id is a credential. An event is named by topic and entry, an access token by the key that it stands for, a list of dead letters by its subscription.",
      example: "app_01jc9x2k4v8m3n5p7q9r1s0/hooks",
    }),
    fields: z.array(z.string()).meta({
      description: "The names of what was changed; never a value.",
      example: ["title", "config.dedupe"],
    }),
    requestId: z.string().nullable().meta({ description: "As in the header X-Request-Id and in the log." }),
    at: timestamp,
  })
  .meta({ id: "AuditRecord", description: "One thing that somebody did." });

const refusalRecord = z
  .object({
    hour: timestamp.meta({ description: "The hour in which it was counted, by its beginning." }),
    organizationId: z.string().nullable().meta({
      description: "Null: nobody knows whose the token was; the operator's organization sees these.",
    }),
    accountId: z.string().nullable(),
    keyId: z.string().nullable(),
    address: z.string().meta({
      description:
        "Of the client; where nobody knows who asked, an IPv6 one stands for its /64. `others`: too many came within the hour to be told apart.",
      example: "192.0.2.1",
    }),
    status: z
      .int()
      .meta({ description: "401: nobody knows who asked. 403: the caller may not.", example: 401 }),
    count: z.int(),
    lastAt: timestamp,
  })
  .meta({ id: "AuditRefusal", description: "Requests that were refused within an hour." });

const BATCH = 500;

/** Who did what, and who was refused. */
export const audit: Resource<AuditDeps> = {
  path: "/audit",
  tag: "Audit",
  routes: ({ db, refusals }) => [
    defineRoute(
      {
        method: "get",
        path: "/",
        operation: "listAudit",
        summary: "List who did what",
        description:
          "Every change of what the organization has, oldest first, written together with the change itself; and who deleted events, read, deleted or re-drove what is in quarantine or a dead letter, sent events again, was given a token. It names fields, never values. It goes back as far as `INLET_AUDIT_RETENTION_DAYS` says.",
        query: filters.extend(pageQuery),
        answer: listOf(auditRecord),
      },
      async ({ caller, query: { limit, offset, ...wanted } }) =>
        mapPage(await listPage(recordsOf(db, caller, wanted), { limit, offset }), render),
    ),
    defineRoute(
      {
        method: "get",
        path: "/export",
        operation: "exportAudit",
        summary: "Export who did what",
        description:
          "All records that the filters leave, oldest first, one JSON object a line, however many they are. A line each as `listAudit` answers it. Where it ends early, the `at` of the last line is the `from` of the next call.",
        query: filters,
        answer: nonJsonAnswer("application/x-ndjson", "The records, one a line."),
      },
      async ({ caller, query }) => {
        const lines = ReadableStream.from(exportLines(db, caller, query)).pipeThrough(
          new TextEncoderStream(),
        );
        return new Response(lines, { headers: { "content-type": "application/x-ndjson" } });
      },
    ),
    defineRoute(
      {
        method: "get",
        path: "/refusals",
        operation: "listRefusals",
        summary: "Count who was refused",
        description:
          "Requests of the management API that were answered 401 or 403, counted by hour, caller and address, newest first. Other gateways write theirs within ten seconds.",
        query: z.object({ ...times, ...pageQuery }),
        answer: listOf(refusalRecord),
      },
      async ({ caller, query: { from, to, limit, offset } }) => {
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
        const { total } = await found
          .select(({ fn }) => fn.countAll<number>().as("total"))
          .executeTakeFirstOrThrow();
        const rows = await found
          .selectAll()
          .orderBy("hour", "desc")
          .orderBy("count", "desc")
          .orderBy("address")
          .orderBy("keyId")
          .orderBy("status")
          .limit(limit)
          .offset(offset)
          .execute();
        const items = rows.map(({ hour, lastAt, organizationId, accountId, keyId, ...row }) => ({
          ...row,
          organizationId: organizationId || null,
          accountId: accountId || null,
          keyId: keyId || null,
          hour: hour.toISOString(),
          lastAt: lastAt.toISOString(),
        }));
        return { items, total };
      },
    ),
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

const render = ({ createdAt, ...row }: Row<"audit">) => ({ ...row, at: createdAt.toISOString() });

/** Read a page at a time, as fast as they are taken. */
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
    yield page.map((row) => `${JSON.stringify(render(row))}\n`).join("");
    if (page.length < BATCH) return;
    last = page.at(-1);
  }
}
