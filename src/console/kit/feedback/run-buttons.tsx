import type { ComponentChildren } from "preact";

interface Props {
  readonly isRunning: boolean;
  readonly isDone: boolean;
  readonly onStop: () => void;
  readonly onClose: () => void;
  /** The button that begins it. */
  readonly children: ComponentChildren;
}

/** The buttons under long work: begin or cancel, then stop, then close. */
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
