import type { Io } from "../io.ts";

const CTRL_C = "\u0003";
const CTRL_D = "\u0004";

/** Handlers for key presses. `r` sends an event again, after an optional event number. `q`, Ctrl-C and Ctrl-D end the command. */
export interface KeyHandlers {
  /**
   * Called to send an event again.
   *
   * @param number number of the event. `undefined` for the most recent event
   */
  readonly onAgain: (number: number | undefined) => void;
  readonly onEnd: () => void;
}

/** Calls the handlers for key presses until disposal. Does nothing if standard input is not a terminal. */
export function readKeys({ stdin }: Io, { onAgain, onEnd }: KeyHandlers): Disposable {
  const terminal = stdin as unknown as NodeJS.ReadStream;
  if (!stdin.isTTY) return { [Symbol.dispose]() {} };
  let digits = "";
  const onData = (chunk: Buffer | string): void => {
    for (const key of String(chunk)) {
      if (/^\d$/.test(key)) digits = (digits + key).slice(-9);
      else {
        if (key === "r") onAgain(digits === "" ? undefined : Number(digits));
        digits = "";
        if (key === "q" || key === CTRL_C || key === CTRL_D) onEnd();
      }
    }
  };
  terminal.setRawMode(true);
  terminal.on("data", onData);
  terminal.resume();
  return {
    [Symbol.dispose]() {
      terminal.off("data", onData);
      terminal.setRawMode(false);
      terminal.pause();
    },
  };
}
