import { useState } from "preact/hooks";
import type { ShownCall } from "../../api/curl.ts";
import { useLoad } from "../../api/use-load.ts";
import { RunDialog } from "../../kit/feedback/run-dialog.tsx";
import { WhenLoaded } from "../../kit/feedback/states.tsx";
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
  return (
    <RunDialog
      title="Send to the handler again"
      call={callOf(place, target)}
      verb={`Send ${count.data === undefined ? "" : formatCount(count.data)} again`}
      isReady={count.data !== undefined && count.data > 0}
      run={async (signal) => {
        setSent(0);
        return `${await sendAgain(place, target, { signal, onProgress: setSent })} sent again`;
      }}
      onDone={onDone}
      onClose={onClose}
    >
      {() => (
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
      )}
    </RunDialog>
  );
}

function callOf(place: Place, target: Target): ShownCall {
  const path = pathOf(place);
  if (target.is === "scope") return { method: "POST", path: `${path}/redrive`, body: target.scope };
  return { method: "POST", path: `${path}/${encodeURIComponent(target.ids[0] ?? "")}/redrive`, body: {} };
}
