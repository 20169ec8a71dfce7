import { api, gotList, type Schemas } from "../../api/client.ts";
import { Empty, ProblemNote } from "../../kit/feedback/states.tsx";
import { Page } from "../../kit/layout/page.tsx";
import { type Column, CountLine, Table } from "../../kit/list/table.tsx";
import { usePages } from "../../kit/list/use-pages.ts";
import { Stranger } from "../../kit/text/stranger.tsx";
import { Time } from "../../kit/text/time.tsx";

type App = Schemas["App"];

const COLUMNS: readonly Column<App>[] = [
  {
    title: "Name",
    cell: ({ id, uid }) => (
      <a href={`/console/apps/${id}`}>
        <Stranger>{uid}</Stranger>
      </a>
    ),
    width: "minmax(0, 2fr)",
  },
  { title: "Title", cell: ({ title }) => <Stranger>{title}</Stranger>, width: "minmax(0, 2fr)", priority: 2 },
  { title: "Installed", cell: ({ createdAt }) => <Time at={createdAt} />, width: "9rem" },
];

export default function Apps() {
  const pages = usePages<App>(
    (page, signal) => gotList(api.GET("/apps", { params: { query: page }, signal })),
    [],
  );
  return (
    <Page title="Apps">
      {pages.problem && <ProblemNote problem={pages.problem} onRetry={pages.reload} />}
      {pages.count === 0 ? (
        <Empty title="No app yet" />
      ) : (
        <>
          <Table
            label="Apps"
            columns={COLUMNS}
            count={pages.count ?? 0}
            rowAt={pages.rowAt}
            onRange={pages.onRange}
            keyOf={({ id }) => id}
          />
          <CountLine count={pages.count ?? 0} of="apps" />
        </>
      )}
    </Page>
  );
}
