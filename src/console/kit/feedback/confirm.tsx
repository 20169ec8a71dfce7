import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { ShownCall } from "../../api/curl.ts";
import { useAction } from "../../api/use-action.ts";
import { Button } from "../layout/button.tsx";
import { ApiCall } from "../text/api-call.tsx";
import { Dialog } from "./dialog.tsx";
import { ErrorNote } from "./states.tsx";

interface Props {
  readonly title: string;
  /** Describes the effect of the action. */
  readonly children: ComponentChildren;
  /** Label of the button: `Delete`. */
  readonly verb: string;
  readonly danger?: boolean;
  /** Name that the user must type to confirm an action that cannot be undone. */
  readonly typed?: string;
  readonly call?: ShownCall;
  readonly act: () => Promise<unknown>;
  readonly onClose: () => void;
}

/** Dialog that asks the user to confirm an action. It closes after success, and shows the error after a failure. */
export function Confirm({ title, children, verb, danger = false, typed, call, act, onClose }: Props) {
  const [text, setText] = useState("");
  const action = useAction(async () => {
    await act();
    onClose();
  });
  const isReady = typed === undefined || text === typed;
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (isReady) void action.run();
        }}
      >
        <div>{children}</div>
        {typed !== undefined && (
          <label class="field">
            <span>
              Type <code>{typed}</code> to continue
            </span>
            <input
              type="text"
              value={text}
              autoComplete="off"
              onInput={(event) => setText(event.currentTarget.value)}
            />
          </label>
        )}
        {action.error && <ErrorNote error={action.error} />}
        {call && <ApiCall call={call} />}
        <div class="row end">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look={danger ? "danger" : "primary"} disabled={!isReady || action.isRunning}>
            {action.isRunning ? "…" : verb}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
