import { useEffect, useRef, useState } from "preact/hooks";
import type { ShownCall } from "../../api/curl.ts";
import { useAction } from "../../api/use-action.ts";
import { useLoad } from "../../api/use-load.ts";
import { announce } from "../../kit/feedback/announce.tsx";
import { Dialog } from "../../kit/feedback/dialog.tsx";
import { RunButtons } from "../../kit/feedback/run-buttons.tsx";
import { ErrorNote, WhenLoaded } from "../../kit/feedback/states.tsx";
import { Button } from "../../kit/layout/button.tsx";
import { ApiCall } from "../../kit/text/api-call.tsx";
import { formatCount } from "../../kit/text/numbers.ts";
import { countOf, type Place, pathOf, sendAgain, type Target } from "./letters.ts";

interface Props {
  readonly place: Place;
  readonly target: Target;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

export function SendDialog({ place, target, onClose, onDone }: Props) {
  const count = useLoad((signal) => countOf(place, target, signal), []);
  const [sent, setSent] = useState<number>();
  const stopping = useRef(new AbortController());
  useEffect(() => () => stopping.current.abort(), []);
  const action = useAction(async () => {
    stopping.current = new AbortController();
    setSent(0);
    try {
      const { signal } = stopping.current;
      announce(`${await sendAgain(place, target, { signal, onProgress: setSent })} sent again`);
    } finally {
      onDone();
    }
  });
  const isDone = sent !== undefined && !action.isRunning;
  return (
    <Dialog title="Send to the handler again" onClose={onClose} wide>
      <div class="stack">
        <WhenLoaded loaded={count} lines={1}>
          {(n) =>
            sent === undefined ? (
              <p role="status">
                <strong>{formatCount(n)}</strong> {n === 1 ? "event" : "events"} will be sent again, oldest
                first, each with another day of attempts. Rejected events come back here.
              </p>
            ) : (
              <>
                <progress max={Math.max(n, sent)} value={sent} aria-label="Sent again" />
                <p role="status">
                  <strong>{formatCount(sent)}</strong> of {formatCount(n)} sent to the handler
                </p>
              </>
            )
          }
        </WhenLoaded>
        {action.error && <ErrorNote error={action.error} />}
        <ApiCall call={callOf(place, target)} />
        <RunButtons
          isRunning={action.isRunning}
          isDone={isDone}
          onStop={() => stopping.current.abort()}
          onClose={onClose}
        >
          <Button
            look="primary"
            disabled={count.data === undefined || count.data === 0}
            onClick={() => void action.run()}
          >
            Send {count.data === undefined ? "" : formatCount(count.data)} again
          </Button>
        </RunButtons>
      </div>
    </Dialog>
  );
}

function callOf(place: Place, target: Target): ShownCall {
  const path = pathOf(place);
  if (target.is === "scope") return { method: "POST", path: `${path}/redrive`, body: target.scope };
  return { method: "POST", path: `${path}/${encodeURIComponent(target.ids[0] ?? "")}/redrive`, body: {} };
}
