/** Description of a quarantine reason, and the suggested action. */
export interface ReasonWords {
  readonly words: string;
  readonly cure: string;
}

const REASONS: Readonly<Record<string, ReasonWords>> = {
  no_match: {
    words: "No definition matches the item.",
    cure: "Add a matching definition, or fix the typePath of the closest one. Then re-drive.",
  },
  id_conflict: {
    words: "An event with the same id but different data already exists.",
    cure: "Re-drive it as a new event, or set dedupe.onConflict of the channel.",
  },
  invalid_body: {
    words: "The body does not match its content type.",
    cure: "Ask the sender to fix the body or its Content-Type.",
  },
  id_missing: { words: "The idPath finds no id.", cure: "Fix the idPath, then re-drive." },
  payload_missing: { words: "The payloadPath finds no value.", cure: "Fix the payloadPath, then re-drive." },
  schema_mismatch: {
    words: "The data does not match the schema of its definition.",
    cure: "Fix the schema, check the preview, then re-drive.",
  },
  invalid_cloudevent: {
    words: "The item is not a valid CloudEvent.",
    cure: "Ask the sender to fix the named attribute.",
  },
  replayed: {
    words: "The same signed bytes arrived before with another id or type.",
    cure: "Re-drive it if the provider sent it on purpose. Otherwise this may be a replay attack.",
  },
  too_deep: {
    words: "The item is nested deeper than the channel allows.",
    cure: "Raise limits.maxDepth of the channel, then re-drive.",
  },
  path_budget: {
    words: "The paths visit too many nodes, or the resulting events are too large in total.",
    cure: "Narrow the paths of the definitions, then re-drive.",
  },
  paused: {
    words: "The item arrived while the channel was paused.",
    cure: "Resume the channel. Inlet then processes the stored items automatically, in order of arrival.",
  },
  signature_invalid: {
    words: "The signature is not valid.",
    cure: "Check the channel's secret and verification scheme. This sample cannot be re-driven.",
  },
};

export const REASON_NAMES: readonly string[] = Object.keys(REASONS);

/** Returns the description of a reason. Falls back to the name for a reason that this version of the console does not know. */
export const wordsOf = (reason: string): ReasonWords =>
  REASONS[reason] ?? { words: reason, cure: "See the quarantine page of the documentation." };
