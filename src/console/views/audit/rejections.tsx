import type { Schemas } from "../../api/client.ts";
import { Empty } from "../../kit/feedback/states.tsx";
import { Section } from "../../kit/layout/page.tsx";
import { PagedTable } from "../../kit/list/loaded-table.tsx";
import { type Column, TIME_WIDTHS } from "../../kit/list/table.tsx";
import { usePages } from "../../kit/list/use-pages.ts";
import { formatCount } from "../../kit/text/numbers.ts";
import { Time } from "../../kit/text/time.tsx";

type Rejection = Schemas["AuditRejection"];

const COLUMNS: readonly Column<Rejection>[] = [
  { title: "Last", ...TIME_WIDTHS, cell: ({ lastAt }) => <Time at={lastAt} /> },
  { title: "Status", width: "6rem", cell: ({ status }) => status },
  { title: "Address", width: "minmax(0, 2fr)", cell: ({ address }) => address },
  {
    title: "Account",
    width: "minmax(0, 2fr)",
    priority: 2,
    cell: ({ accountId }) => <code>{accountId ?? "unknown"}</code>,
  },
  { title: "Times", width: "5rem", align: "end", cell: ({ count }) => formatCount(count) },
];

/** Shows the number of requests per hour that were rejected with 401 or 403. */
export function Rejections() {
  const pages = usePages<Rejection>("/audit/rejections");
  return (
    <Section title="Rejected requests per hour">
      <PagedTable
        label="Rejections"
        columns={COLUMNS}
        pages={pages}
        keyOf={({ hour, address, accountId, status }) => [hour, address, accountId, status].join()}
        maxRows={8}
        of="entries"
        empty={<Empty title="No rejected requests" />}
        lines={2}
      />
    </Section>
  );
}
