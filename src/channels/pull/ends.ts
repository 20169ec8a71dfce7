import { StaleSourceError } from "../../bus/errors.ts";
import { UnavailableError } from "../../lib/errors.ts";
import type { Log } from "../../log.ts";
import type { SourceEnd } from "../source.ts";

export const failed = (code: string, message: string): Extract<SourceEnd, { kind: "failed" }> => ({
  kind: "failed",
  code,
  message,
});

export const broken = (code: string, message: string): SourceEnd => ({ kind: "broken", code, message });

export const doneAt = (notBeforeMs: number | undefined): SourceEnd =>
  notBeforeMs === undefined ? { kind: "done" } : { kind: "done", notBeforeMs };

/** The end of a run that threw; undefined where the source is another's now. */
export function endOfThrown(error: unknown, log: Log): SourceEnd | undefined {
  if (error instanceof StaleSourceError) return undefined;
  if (error instanceof UnavailableError) {
    log.debug({ event: "source.write_failed", err: error }, "run ended by a failed write");
    return failed("unavailable", "What came could not be published.");
  }
  log.error({ event: "source.failed", err: error }, "run ended with an unexpected error");
  return failed("internal", "The run ended with an internal error.");
}
