import { type Schemas, sendForList } from "../../api/client.ts";
import { formatQuery } from "../../api/curl.ts";
import { describeReason } from "../../kit/explained/reasons.ts";
import { Empty } from "../../kit/feedback/states.tsx";
import { Badge, Section } from "../../kit/layout/page.tsx";
import { PagedTable } from "../../kit/list/loaded-table.tsx";
import type { Column } from "../../kit/list/table.tsx";
import { usePages } from "../../kit/list/use-pages.ts";
import { ApiCall } from "../../kit/text/api-call.tsx";
import { formatCount } from "../../kit/text/numbers.ts";
import { Time } from "../../kit/text/time.tsx";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";

type Held = Schemas["HeldRecord"];

const COLUMNS: readonly Column<Held>[] = [
  { title: "Reason", width: "10rem", cell: ({ reason }) => <Badge tone="warn">{reason}</Badge> },
  {
    title: "Detail",
    width: "minmax(0, 2fr)",
    cell: ({ reason, detail }) => (
      <span title={describeReason(reason).description}>
        <UntrustedText>{detail}</UntrustedText>
      </span>
    ),
  },
  { title: "Arrivals", width: "6rem", align: "end", priority: 2, cell: ({ count }) => formatCount(count) },
  { title: "Last", width: "9rem", cell: ({ lastAt }) => <Time at={lastAt} /> },
];

/** Table of the items that the intake holds, such as those of a customer whose install has no route key yet. */
export function HeldItems({ blueprintId }: { readonly blueprintId: string }) {
  const path = `/blueprints/${blueprintId}/quarantine`;
  const pages = usePages<Held>(
    (page, signal) => sendForList<Held>(path + formatQuery(page), { signal }),
    [path],
  );
  return (
    <Section title="Quarantine">
      <PagedTable
        label="Quarantine"
        columns={COLUMNS}
        pages={pages}
        keyOf={({ id }) => id}
        maxRows={8}
        of="held items"
        lines={2}
        empty={
          <Empty title="No held items">
            Items without an install appear here, until an install gets their key.
          </Empty>
        }
      />
      <ApiCall call={{ method: "GET", path }} label="API call for these items" />
    </Section>
  );
}
