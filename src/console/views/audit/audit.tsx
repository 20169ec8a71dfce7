import type { Schemas } from "../../api/client.ts";
import { formatLabel } from "../../kit/form/labels.ts";
import { Badge } from "../../kit/layout/page.tsx";
import { choiceFilter, type FilterField, TIME_FILTERS } from "../../kit/list/filters.tsx";
import { type Column, TIME_WIDTHS } from "../../kit/list/table.tsx";
import { type ResourceSpec, ResourceView } from "../../kit/resource/resource-view.tsx";
import { ApiCall } from "../../kit/text/api-call.tsx";
import { Time } from "../../kit/text/time.tsx";
import { UntrustedCode, UntrustedText } from "../../kit/text/untrusted-text.tsx";
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
  ...TIME_FILTERS,
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
    cell: ({ entityId }) => <UntrustedCode class="faint">{entityId}</UntrustedCode>,
  },
];

const SPEC: ResourceSpec<AuditRecord> = {
  title: "Audit",
  one: "entry",
  many: "entries",
  lead: "Changes (field names without values), access to senders' data, and issued tokens.",
  path: "/audit",
  noun: "audit",
  columns: COLUMNS,
  isReversed: true,
  maxRows: 14,
  filters: FIELDS,
  empty: "Changes of this organization are listed here.",
  below: () => (
    <>
      <Rejections />
      <ApiCall call={{ method: "GET", path: "/audit/export" }} label="Full export as JSON lines" />
    </>
  ),
};

export default function Audit() {
  return <ResourceView spec={SPEC} />;
}
