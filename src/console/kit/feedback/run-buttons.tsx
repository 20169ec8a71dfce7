import type { ComponentChildren } from "preact";

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
    <button type="button" class="button" onClick={onClose}>
      {isDone ? "Close" : "Cancel"}
    </button>
    {isRunning ? (
      <button type="button" class="button" onClick={onStop}>
        Stop
      </button>
    ) : (
      !isDone && children
    )}
  </div>
);
