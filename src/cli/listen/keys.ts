import type { Io } from "../io.ts";

const CTRL_C = "\u0003";
const CTRL_D = "\u0004";

/** What a person presses while events come: a number and `r`, or `r` alone; an end. */
export interface KeyHandlers {
  /** @param number undefined: the last one */
  readonly onAgain: (number: number | undefined) => void;
  readonly onEnd: () => void;
}

/** Reads keys from a terminal until disposal; elsewhere does nothing. */
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
