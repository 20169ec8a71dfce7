import { useEffect, useRef, useState } from "preact/hooks";
import { useAction } from "../../api/use-action.ts";
import { useLoad } from "../../api/use-load.ts";
import { announce } from "../feedback/announce.tsx";
import { Dialog } from "../feedback/dialog.tsx";
import { ErrorNote, WhenLoaded } from "../feedback/states.tsx";
import { Button } from "../layout/button.tsx";
import { ApiCall } from "../text/api-call.tsx";
import { formatCount } from "../text/numbers.ts";
import { type Batch, type Counts, NO_COUNTS } from "./batch.ts";

interface Props {
  readonly batch: Batch;
  /** Called when the work has ended, even if it failed. */
  readonly onDone: () => void;
  readonly onClose: () => void;
}

/** Dialog that previews work on many failures, runs it, and shows its progress. The user can stop it. */
export function BatchDialog({ batch, onDone, onClose }: Props) {
  const { title, verb, isDanger = false, call, words } = batch;
  const preview = useLoad(batch.preview, []);
  const count = preview.data?.count ?? batch.count;
  const [counts, setCounts] = useState<Counts>();
  const stopping = useRef(new AbortController());
  useEffect(() => () => stopping.current.abort(), []);
  const action = useAction(async () => {
    stopping.current = new AbortController();
    setCounts(NO_COUNTS);
    try {
      const done = await batch.run({ signal: stopping.current.signal, onProgress: setCounts });
      announce(
        resultsOf(done, words)
          .map(([name, n]) => `${n} ${name}`)
          .join(", "),
      );
    } finally {
      onDone();
    }
  });
  const isDone = counts !== undefined && !action.isRunning;
  return (
    <Dialog title={title} onClose={onClose}>
      <div class="stack">
        {counts === undefined ? (
          <WhenLoaded loaded={preview} lines={2}>
            {({ content }) => (
              <div class="stack" role="status">
                {content}
              </div>
            )}
          </WhenLoaded>
        ) : (
          <Outcome counts={counts} of={count} words={words} isDone={isDone && !action.error} />
        )}
        {action.error && <ErrorNote error={action.error} />}
        <ApiCall call={call} />
        <div class="row end">
          <Button onClick={onClose}>{isDone ? "Close" : "Cancel"}</Button>
          {action.isRunning && <Button onClick={() => stopping.current.abort()}>Stop</Button>}
          {counts === undefined && (
            <Button
              look={isDanger ? "danger" : "primary"}
              disabled={preview.data === undefined || count === 0}
              onClick={() => void action.run()}
            >
              {verb(formatCount(count))}
            </Button>
          )}
        </div>
      </div>
    </Dialog>
  );
}

type Result = readonly [name: string, count: number, tone: "ok" | "bad" | ""];

/** Returns the results by name. Unusual results, such as rejections, are only listed if there are any. */
const resultsOf = (
  { released, kept, refused, unavailable, gone }: Counts,
  words: Batch["words"],
): readonly Result[] => [
  [words.released, released, "ok"],
  ...(words.kept === undefined ? [] : [[words.kept, kept, ""] as const]),
  ...(refused === 0 ? [] : [["rejected", refused, "bad"] as const]),
  ...(gone === 0 ? [] : [["already gone", gone, ""] as const]),
  ...(unavailable === 0 ? [] : [["unknown", unavailable, "bad"] as const]),
];

interface OutcomeProps extends Pick<Batch, "words"> {
  readonly counts: Counts;
  readonly of: number;
  readonly isDone: boolean;
}

/** Progress and result of the work. */
function Outcome({ counts, of, words, isDone }: OutcomeProps) {
  const results = resultsOf(counts, words);
  const done = Object.values(counts).reduce((sum, n) => sum + n, 0);
  return (
    <>
      <progress max={Math.max(of, done)} value={done} aria-label="Progress" />
      {results.length === 1 ? (
        <p role="status">
          <strong>{formatCount(done)}</strong> of {formatCount(of)} {words.released}
        </p>
      ) : (
        <Tally results={results} />
      )}
      {isDone && counts.unavailable > 0 && (
        <p class="note warn">
          Redis did not respond, so the result of these items is unknown. You can safely repeat the action.
        </p>
      )}
      {isDone && done < of && counts.unavailable === 0 && (
        <p class="soft">Stopped, or the others were already gone.</p>
      )}
    </>
  );
}

/** A result whose count may be unknown. A text then replaces it. */
type TallyResult = readonly [name: string, count: number | string, tone: Result[2]];

/** Row of large numbers with their names. */
export const Tally = ({ results }: { readonly results: readonly TallyResult[] }) => (
  <dl class="tally">
    {results.map(([name, n, tone]) => (
      <div key={name}>
        <dt>{name}</dt>
        <dd class={n === 0 || typeof n === "string" ? "" : tone}>
          {typeof n === "string" ? n : formatCount(n)}
        </dd>
      </div>
    ))}
  </dl>
);
