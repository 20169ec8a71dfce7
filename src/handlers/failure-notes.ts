import type { HandlerAttempt } from "../event/handler.ts";
import { describeFailure } from "../event/handler-failure.ts";
import type { Log } from "../log.ts";

const WRITE_EVERY_MS = 1_000;
const LOG_EVERY_MS = 60_000;

export type FailureNotes = ReturnType<typeof createFailureNotes>;

/**
 * Stores and logs failed attempts. Writes the first failure immediately, then the latest one at most once per second. Logs each distinct
 * reason at most once per minute.
 * @param deps.write stores a failure; if it rejects, the next failure triggers another write
 */
export function createFailureNotes(deps: {
  readonly write: (attempt: HandlerAttempt) => Promise<void>;
  readonly log: Log;
}) {
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
      log.warn({ event: "handler.error_not_written", err }, "the failure of a handler could not be stored");
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
    note(attempt: HandlerAttempt): void {
      const { status, code } = attempt;
      const kind = `${code} ${status}`;
      const nowMs = performance.now();
      if (nowMs - (loggedAtMs.get(kind) ?? Number.NEGATIVE_INFINITY) >= LOG_EVERY_MS) {
        loggedAtMs.set(kind, nowMs);
        const facts = { code, ...(status !== null && { status }), reason: describeFailure(attempt) };
        log.warn(
          { event: "handler.attempt_failed", ...facts },
          "an attempt to deliver an event to a handler failed",
        );
      }
      waiting = attempt;
      if (timer === undefined) begin();
    },
    async [Symbol.asyncDispose](): Promise<void> {
      clearTimeout(timer);
      await writing;
      await writeWaiting();
    },
  };
}
