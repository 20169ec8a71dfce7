import type { HandlerAttempt } from "../event/handler.ts";
import type { Log } from "../log.ts";
import { describeFailure } from "./handler-failure.ts";

/** Brings the reason of failed attempts to where people look: the log, and the row of the subscription. */
export interface FailureNotes extends AsyncDisposable {
  readonly note: (attempt: HandlerAttempt) => void;
}

const WRITE_EVERY_MS = 1_000;
const LOG_EVERY_MS = 60_000;

/**
 * The newest failure is written at once, those after it together. One reason is a line of the log once a minute.
 *
 * @param deps.write may reject: the next one comes with the next failure.
 */
export function createFailureNotes(deps: {
  readonly write: (attempt: HandlerAttempt) => Promise<void>;
  readonly log: Log;
}): FailureNotes {
  const { write, log } = deps;
  const loggedAtMs = new Map<string, number>();
  let waiting: HandlerAttempt | undefined;
  let writing: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;

  async function writeWaiting(): Promise<void> {
    const attempt = waiting;
    waiting = undefined;
    if (attempt === undefined) return;
    await write(attempt).catch((err: unknown) => {
      log.warn({ event: "handler.error_not_written", err }, "why a handler failed is not written");
    });
  }

  function begin(): void {
    writing = writeWaiting();
    timer = setTimeout(() => {
      timer = undefined;
      if (waiting !== undefined) begin();
    }, WRITE_EVERY_MS);
    timer.unref();
  }

  return {
    note(attempt) {
      const { status, code } = attempt;
      const kind = `${code} ${status}`;
      const nowMs = performance.now();
      if (nowMs - (loggedAtMs.get(kind) ?? Number.NEGATIVE_INFINITY) >= LOG_EVERY_MS) {
        loggedAtMs.set(kind, nowMs);
        const facts = { code, ...(status !== null && { status }), reason: describeFailure(attempt) };
        log.warn({ event: "handler.attempt_failed", ...facts }, "a handler did not take an event");
      }
      waiting = attempt;
      if (timer === undefined) begin();
    },
    async [Symbol.asyncDispose]() {
      clearTimeout(timer);
      await writing;
      await writeWaiting();
    },
  };
}
