import { ErrorNote } from "../feedback/states.tsx";
import { Button } from "../layout/button.tsx";
import { formatCount } from "../text/numbers.ts";
import type { Scan } from "./use-scan.ts";

/** Progress of a search through a list, with a button that continues the search. */
export function ScanLine<Row>({ scan, of }: { readonly scan: Scan<Row>; readonly of: string }) {
  const { rows, searched, total, isRunning, error, continueSearch } = scan;
  return (
    <>
      {error && <ErrorNote error={error} {...(continueSearch && { onRetry: continueSearch })} />}
      <p class="count-line row wrap">
        <span role="status">
          {formatCount(rows.length)} found; searched{" "}
          {total === undefined || searched < total
            ? `the newest ${formatCount(searched)}${total === undefined ? "" : ` of ${formatCount(total)}`}`
            : `all ${formatCount(total)}`}{" "}
          {of}
          {isRunning && " …"}
        </span>
        {continueSearch && !error && <Button onClick={continueSearch}>Search further</Button>}
      </p>
    </>
  );
}
