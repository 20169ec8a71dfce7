import type { Io } from "../io.ts";
import { escapeText } from "./escape.ts";
import { fitTo } from "./width.ts";

/** Shows progress on one terminal line until disposal. Does nothing without a terminal. */
export interface Progress extends Disposable {
  readonly show: (text: string) => void;
}

const EVERY_MS = 100;
const DEFAULT_CELLS = 80;
/** Terminal sequence that moves the cursor to the start of the line and clears the line. */
const CLEAR = "\r\x1b[K";

export function createProgress({ stderr, env }: Pick<Io, "stderr" | "env">): Progress {
  const isShown = stderr.isTTY === true && env.TERM !== "dumb";
  let shownAtMs = Number.NEGATIVE_INFINITY;
  return {
    show(text) {
      if (!isShown || performance.now() - shownAtMs < EVERY_MS) return;
      shownAtMs = performance.now();
      stderr.write(CLEAR + fitTo((stderr.columns ?? DEFAULT_CELLS) - 1, escapeText(text)));
    },
    [Symbol.dispose]: () => void (shownAtMs > 0 && stderr.write(CLEAR)),
  };
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

/** Formats a number of bytes as a size, such as `12.3 MiB`. */
export function bytesText(bytes: number): string {
  const power = bytes < 1 ? 0 : Math.min(Math.floor(Math.log2(bytes) / 10), UNITS.length - 1);
  const value = bytes / 1024 ** power;
  return `${power === 0 ? value : value.toFixed(1)} ${UNITS[power]}`;
}
