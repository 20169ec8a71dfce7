import type { ComponentChildren } from "preact";
import { ErrorNote, Loading } from "../feedback/states.tsx";
import { Button } from "../layout/button.tsx";
import { formatCount } from "../text/numbers.ts";
import { CountLine, Table, type TableProps } from "./table.tsx";
import type { Pages } from "./use-pages.ts";
import type { Scan } from "./use-scan.ts";

interface Props<Row> extends Omit<TableProps<Row>, "rows"> {
  /** Plural name of the rows in a sentence: `events`. */
  readonly of: string;
  /** Shown instead of a table without rows. */
  readonly empty: ComponentChildren;
}

interface PagedTableProps<Row> extends Props<Row> {
  readonly pages: Pages<Row>;
  /** Number of lines of the placeholder. */
  readonly lines?: number;
}

/** Table of an API list that is loaded page by page. */
export function PagedTable<Row>({ pages, of, empty, lines = 8, ...table }: PagedTableProps<Row>) {
  const { count, total, hasMore = false, isCut = false, error, reload } = pages;
  return (
    <>
      {error && <ErrorNote error={error} onRetry={reload} />}
      {count === undefined && !error && <Loading lines={lines} as="rows" />}
      {count === 0 && empty}
      {count !== undefined && count > 0 && (
        <>
          <Table {...table} rows={pages} />
          {isCut ? (
            <p class="count-line">
              The newest {formatCount(count)} {of}. Select a time range to see older ones.
            </p>
          ) : total === undefined && hasMore ? (
            <p class="count-line">
              The newest {formatCount(count - 1)} {of}. Scroll down to load more.
            </p>
          ) : (
            <CountLine count={total ?? count} of={of} />
          )}
        </>
      )}
    </>
  );
}

/** Table of the rows that a search has found, with its progress and a button that stops or continues it. */
export function ScannedTable<Row>({ scan, of, empty, ...table }: Props<Row> & { readonly scan: Scan<Row> }) {
  const { rows, scanned, total, isRunning, isComplete, error, stop, continueSearch } = scan;
  const all = total === undefined ? "" : ` of ${formatCount(total)}`;
  return (
    <>
      {rows.length > 0 && <Table {...table} rows={rows} />}
      {rows.length === 0 && isComplete && empty}
      {rows.length === 0 && isRunning && <Loading lines={8} as="rows" />}
      {error && <ErrorNote error={error} onRetry={continueSearch} />}
      <div class="count-line row wrap">
        <span role="status">
          {formatCount(rows.length)} found. Scanned{" "}
          {isComplete ? `all ${formatCount(scanned)}` : `${formatCount(scanned)}${all}`} {of}.
        </span>
        {isRunning && total !== undefined && (
          <progress max={Math.max(total, 1)} value={scanned} aria-label="Progress of the search" />
        )}
        {isRunning && <Button onClick={stop}>Stop</Button>}
        {!isRunning && !isComplete && !error && <Button onClick={continueSearch}>Search further</Button>}
      </div>
    </>
  );
}
