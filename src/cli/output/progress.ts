import type { Io } from "../io.ts";
import { escapeText } from "./escape.ts";
import type { Output } from "./output.ts";
import { fitTo } from "./width.ts";

/** Shows progress on one line of standard error until disposal. Does nothing in pipes, or with JSON output. */
export interface Progress extends Disposable {
  readonly show: (text: string) => void;
}

const EVERY_MS = 100;
const DEFAULT_CELLS = 80;
/** Terminal sequence that moves the cursor to the start of the line and clears the line. */
const CLEAR = "\r\x1b[K";

export function createProgress(
  { stdout, stderr, env }: Pick<Io, "stdout" | "stderr" | "env">,
  { isJson }: Pick<Output, "isJson">,
): Progress {
  const isShown = !isJson && stdout.isTTY === true && stderr.isTTY === true && env.TERM !== "dumb";
  let shownAtMs = Number.NEGATIVE_INFINITY;
  return {
    show(text) {
      if (!isShown || performance.now() - shownAtMs < EVERY_MS) return;
      shownAtMs = performance.now();
      stderr.write(CLEAR + fitTo((stderr.columns ?? DEFAULT_CELLS) - 1, escapeText(text)));
    },
    [Symbol.dispose]() {
      if (shownAtMs > 0) stderr.write(CLEAR);
      shownAtMs = Number.NEGATIVE_INFINITY;
    },
  };
}

const BAR_CELLS = 20;

/** Draws a bar with the completed part of some work, and its numbers. */
export function renderBar(done: number, total: number): string {
  const filled = total === 0 ? BAR_CELLS : Math.floor((done / total) * BAR_CELLS);
  return `${"█".repeat(filled)}${"░".repeat(BAR_CELLS - filled)} ${done} of ${total}`;
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

/** Formats a number of bytes as a size, such as `12.3 MiB`. */
export function bytesText(bytes: number): string {
  const power = bytes < 1 ? 0 : Math.min(Math.floor(Math.log2(bytes) / 10), UNITS.length - 1);
  const value = bytes / 1024 ** power;
  return `${power === 0 ? value : value.toFixed(1)} ${UNITS[power]}`;
}
