import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { ShownCall } from "../../api/curl.ts";
import { useAction } from "../../api/use-action.ts";
import { Button } from "../layout/button.tsx";
import { ApiCall } from "../text/api-call.tsx";
import { announce } from "./announce.tsx";
import { Dialog } from "./dialog.tsx";
import { ErrorNote } from "./states.tsx";

interface Props {
  readonly title: string;
  readonly call: ShownCall;
  /** Label of the button that starts the work. */
  readonly verb: string;
  readonly isReady?: boolean;
  /** Does the work until `signal` aborts. Resolves with its result, for screen readers. */
  readonly run: (signal: AbortSignal) => Promise<string>;
  /** Called when the work has ended, even if it failed. */
  readonly onDone: () => void;
  readonly onClose: () => void;
  readonly children: (isDone: boolean) => ComponentChildren;
}

/** Dialog for long-running work, which the user can stop. */
export function RunDialog({ title, call, verb, isReady = true, run, onDone, onClose, children }: Props) {
  const [isStarted, setStarted] = useState(false);
  const stopping = useRef(new AbortController());
  useEffect(() => () => stopping.current.abort(), []);
  const action = useAction(async () => {
    stopping.current = new AbortController();
    setStarted(true);
    try {
      announce(await run(stopping.current.signal));
    } finally {
      onDone();
    }
  });
  const isDone = isStarted && !action.isRunning;
  return (
    <Dialog title={title} onClose={onClose} wide>
      <div class="stack">
        {children(isDone)}
        {action.error && <ErrorNote error={action.error} />}
        <ApiCall call={call} />
        <div class="row end">
          <Button onClick={onClose}>{isDone ? "Close" : "Cancel"}</Button>
          {action.isRunning && <Button onClick={() => stopping.current.abort()}>Stop</Button>}
          {!isStarted && (
            <Button look="primary" disabled={!isReady} onClick={() => void action.run()}>
              {verb}
            </Button>
          )}
        </div>
      </div>
    </Dialog>
  );
}
