import { api, type Schemas } from "../../api/client.ts";
import { formatQuery } from "../../api/curl.ts";
import { Empty } from "../../kit/feedback/states.tsx";
import { formatLabel } from "../../kit/form/labels.ts";
import { Badge, Page } from "../../kit/layout/page.tsx";
import { choiceFilter, FilterBar, type FilterField, useFilters } from "../../kit/list/filters.tsx";
import { PagedTable } from "../../kit/list/loaded-table.tsx";
import { type Column, TIME_WIDTHS } from "../../kit/list/table.tsx";
import { newestFirst, usePages } from "../../kit/list/use-pages.ts";
import { ApiCall } from "../../kit/text/api-call.tsx";
import { Time } from "../../kit/text/time.tsx";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { Rejections } from "./rejections.tsx";

type AuditRecord = Schemas["AuditRecord"];

/** Entity types for the filter of the audit log, the most useful ones first. */
const ENTITIES = [
  ...[
    "channel",
    "apiKey",
    "connection",
    "app",
    "blueprint",
    "subscription",
    "quarantinedItem",
    "deadLetter",
    "event",
  ],
  ...[
    "delivery",
    "problem",
    "accessToken",
    "account",
    "role",
    "membership",
    "organization",
    "space",
    "identity",
  ],
] as const;

const FIELDS: readonly FilterField[] = [
  choiceFilter("entity", "What", ENTITIES, formatLabel),
  { name: "entityId", label: "Id", kind: "text" },
  { name: "accountId", label: "Account", kind: "text", placeholder: "acc_…" },
  { name: "from", label: "From", kind: "time" },
  { name: "to", label: "To", kind: "time" },
];

const COLUMNS: readonly Column<AuditRecord>[] = [
  { title: "When", ...TIME_WIDTHS, cell: ({ at }) => <Time at={at} /> },
  {
    title: "Action",
    width: "minmax(0, 4fr)",
    cell: ({ action, sentence }) => (
      <>
        {(action === "delete" || action === "revoke") && <Badge tone="bad">{action}</Badge>}{" "}
        <UntrustedText>{sentence}</UntrustedText>
      </>
    ),
  },
  {
    title: "Id",
    width: "minmax(0, 1.5fr)",
    priority: 3,
    cell: ({ entityId }) => (
      <code class="faint">
        <UntrustedText>{entityId}</UntrustedText>
      </code>
    ),
  },
];

export default function Audit() {
  const { values, resolved, set } = useFilters(FIELDS.map(({ name }) => name));
  const query = resolved as NonNullable<InletApi.paths["/audit"]["get"]["parameters"]["query"]>;
  const pages = newestFirst(
    usePages<AuditRecord>(
      (page, signal) => api.list("/audit", { query: { ...query, ...page }, signal }),
      [JSON.stringify(resolved)],
    ),
  );
  return (
    <Page
      title="Audit"
      lead="Changes (field names without values), access to senders' data, and issued tokens."
    >
      <FilterBar fields={FIELDS} values={values} onChange={set} />
      <div class="stack">
        <PagedTable
          label="Audit"
          columns={COLUMNS}
          pages={pages}
          keyOf={({ id }) => id}
          maxRows={14}
          of="entries"
          empty={<Empty title="No entries match the filters" />}
        />
      </div>
      <ApiCall call={{ method: "GET", path: `/audit${formatQuery(resolved)}` }} />
      <ApiCall call={{ method: "GET", path: `/audit/export` }} label="Full export as JSON lines" />
      <Rejections />
    </Page>
  );
}
