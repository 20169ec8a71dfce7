import type { ComponentChildren } from "preact";
import { Button } from "../layout/button.tsx";

interface Props {
  readonly isRunning: boolean;
  readonly isDone: boolean;
  readonly onStop: () => void;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

/** Buttons of a dialog for long-running work: start and cancel before the work, stop during it, close afterwards. */
export const RunButtons = ({ isRunning, isDone, onStop, onClose, children }: Props) => (
  <div class="row end">
    <Button onClick={onClose}>{isDone ? "Close" : "Cancel"}</Button>
    {isRunning ? <Button onClick={onStop}>Stop</Button> : !isDone && children}
  </div>
);
