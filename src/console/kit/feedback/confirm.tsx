import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { send } from "../../api/client.ts";
import type { ShownCall } from "../../api/curl.ts";
import { useAction } from "../../api/use-action.ts";
import { TextField } from "../form/field.tsx";
import { Form, FormFoot } from "../form/form.tsx";
import { Dialog } from "./dialog.tsx";
import { toast } from "./toast.tsx";

export interface ConfirmProps<T> {
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
  /** Message after success. */
  readonly done?: string;
  /** Called after success. */
  readonly onDone?: (answer: T) => void;
  readonly onClose: () => void;
}

/** Dialog that asks the user to confirm an action. It closes after success, and shows the error after a failure. */
export function Confirm<T>(props: ConfirmProps<T>) {
  const { title, children, verb, danger = false, typed, call, isReady = true, done, onDone, onClose } = props;
  const { act = () => send<T>(call.method, call.path, call) } = props;
  const [text, setText] = useState("");
  const action = useAction(async () => {
    const answer = await act();
    if (done !== undefined) toast(done);
    onDone?.(answer);
    onClose();
  });
  const canConfirm = isReady && (typed === undefined || text === typed);
  return (
    <Dialog title={title} onClose={onClose}>
      <Form onSubmit={() => canConfirm && action.run()}>
        <div>{children}</div>
        {typed !== undefined && (
          <TextField
            label={
              <>
                Type <code>{typed}</code> to continue
              </>
            }
            value={text}
            onChange={setText}
          />
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
