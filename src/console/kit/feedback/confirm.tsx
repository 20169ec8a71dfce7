import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { ShownCall } from "../../api/curl.ts";
import { useAction } from "../../api/use-action.ts";
import { Form, FormFoot } from "../form/form.tsx";
import { Dialog } from "./dialog.tsx";

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
      <Form onSubmit={() => isReady && action.run()}>
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
        <FormFoot
          action={action}
          call={call}
          verb={action.isRunning ? "…" : verb}
          danger={danger}
          isReady={isReady}
          onCancel={onClose}
        />
      </Form>
    </Dialog>
  );
}
