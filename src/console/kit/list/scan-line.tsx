import { ProblemNote } from "../feedback/states.tsx";
import { formatCount } from "../text/numbers.ts";
import type { Scan } from "./use-scan.ts";

/** Shows the progress of a search through a list, with a button to continue. */
export function ScanLine<Row>({ scan, of }: { readonly scan: Scan<Row>; readonly of: string }) {
  const { rows, looked, total, isRunning, problem, goOn } = scan;
  return (
    <>
      {problem && <ProblemNote problem={problem} {...(goOn && { onRetry: goOn })} />}
      <p class="count-line row wrap">
        <span role="status">
          {formatCount(rows.length)} found; searched{" "}
          {total === undefined || looked < total
            ? `the newest ${formatCount(looked)}${total === undefined ? "" : ` of ${formatCount(total)}`}`
            : `all ${formatCount(total)}`}{" "}
          {of}
          {isRunning && " …"}
        </span>
        {goOn && !problem && (
          <button type="button" class="button" onClick={goOn}>
            Search further
          </button>
        )}
      </p>
    </>
  );
}
