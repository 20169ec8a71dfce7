import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { send } from "../../api/client.ts";
import type { ShownCall } from "../../api/curl.ts";
import { useAction } from "../../api/use-action.ts";
import { Form, FormFoot } from "../form/form.tsx";
import { Dialog } from "./dialog.tsx";

interface Props<T> {
  readonly title: string;
  /** Describes the effect of the action. */
  readonly children: ComponentChildren;
  /** Label of the button: `Delete`. */
  readonly verb: string;
  readonly danger?: boolean;
  /** Name that the user must type to confirm an action that cannot be undone. */
  readonly typed?: string;
  /** API call of the action, which the dialog shows. */
  readonly call: ShownCall;
  /** Runs the action. Default: sends `call`. */
  readonly act?: () => Promise<T>;
  /** Whether the user can confirm the action now. */
  readonly isReady?: boolean;
  /** Called after success. */
  readonly onDone?: (answer: T) => void;
  readonly onClose: () => void;
}

/** Dialog that asks the user to confirm an action. It closes after success, and shows the error after a failure. */
export function Confirm<T>(props: Props<T>) {
  const { title, children, verb, danger = false, typed, call, isReady = true, onDone, onClose } = props;
  const { act = () => send<T>(call.method, call.path, call) } = props;
  const [text, setText] = useState("");
  const action = useAction(async () => {
    const answer = await act();
    onDone?.(answer);
    onClose();
  });
  const canConfirm = isReady && (typed === undefined || text === typed);
  return (
    <Dialog title={title} onClose={onClose}>
      <Form onSubmit={() => canConfirm && action.run()}>
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
          isReady={canConfirm}
          onCancel={onClose}
        />
      </Form>
    </Dialog>
  );
}
