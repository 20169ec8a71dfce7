import type { PollRecord } from "../../bus/sources/source-states.ts";
import type { IngestResult } from "../../event/ingest.ts";
import type { PollFacts, SourceEnd } from "../source.ts";

/** A delivery without an outcome counts as one item. */
export function countItems(results: readonly IngestResult[]): number {
  let items = 0;
  for (const result of results) items += result.kind === "accepted" ? result.outcome.received : 1;
  return items;
}

export function countPublished(results: readonly IngestResult[]): number {
  let events = 0;
  for (const result of results) if (result.kind === "accepted") events += result.outcome.published;
  return events;
}

export function recordPoll(
  facts: PollFacts,
  end: SourceEnd,
  run: { readonly published: number; readonly beganMs: number; readonly nowMs: number },
): PollRecord {
  const { published, beganMs, nowMs } = run;
  const error = "code" in end ? end.code : end.kind === "needsReauth" ? end.kind : undefined;
  return { ...facts, atMs: beganMs, durationMs: Math.max(0, nowMs - beganMs), published, error };
}
