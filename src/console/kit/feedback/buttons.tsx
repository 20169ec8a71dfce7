import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { send } from "../../api/client.ts";
import { useAction } from "../../api/use-action.ts";
import { Button } from "../layout/button.tsx";
import { Confirm, type ConfirmProps } from "./confirm.tsx";
import { ErrorNote } from "./states.tsx";
import { toast } from "./toast.tsx";

interface ActionProps {
  readonly look?: string;
  readonly act: () => Promise<unknown>;
  readonly children: ComponentChildren;
}

/** Button that runs an action, and shows its error. */
export function ActionButton({ look, act, children }: ActionProps) {
  const action = useAction(act);
  return (
    <>
      <Button look={look} disabled={action.isRunning} onClick={() => void action.run()}>
        {children}
      </Button>
      {action.error && <ErrorNote error={action.error} />}
    </>
  );
}

interface PauseProps {
  /** API path of the entity. */
  readonly path: string;
  readonly isPaused: boolean;
  /** Effect of a pause, as a sentence. */
  readonly effect: string;
  readonly onDone: () => void;
}

/** Button that pauses or resumes an entity. */
export const PauseButton = ({ path, isPaused, effect, onDone }: PauseProps) => (
  <ActionButton
    act={async () => {
      await send("POST", `${path}/${isPaused ? "resume" : "pause"}`, { body: {} });
      toast(isPaused ? "Resumed." : `Paused. ${effect}`);
      onDone();
    }}
  >
    {isPaused ? "Resume" : "Pause"}
  </ActionButton>
);

interface DialogButtonProps {
  readonly label: ComponentChildren;
  readonly look?: string | undefined;
  /** Renders the open dialog. */
  readonly children: (onClose: () => void) => ComponentChildren;
}

/** Button that opens a dialog. */
export function DialogButton({ label, look, children }: DialogButtonProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button look={look} onClick={() => setOpen(true)}>
        {label}
      </Button>
      {isOpen && children(() => setOpen(false))}
    </>
  );
}

type ConfirmButtonProps<T> = Omit<ConfirmProps<T>, "onClose"> & Omit<DialogButtonProps, "children">;

/** Button for an action that the user has to confirm. */
export const ConfirmButton = <T,>({ label, look, ...confirm }: ConfirmButtonProps<T>) => (
  <DialogButton label={label} look={look}>
    {(onClose) => <Confirm {...confirm} onClose={onClose} />}
  </DialogButton>
);
