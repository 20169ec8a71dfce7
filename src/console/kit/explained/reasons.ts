/** Why an item is in quarantine, in words, and what mends it. */
export interface ReasonWords {
  readonly words: string;
  readonly cure: string;
}

const REASONS: Readonly<Record<string, ReasonWords>> = {
  no_match: {
    words: "No definition takes it.",
    cure: "Add a definition that matches it, or mend the typePath of the closest one; then re-drive.",
  },
  id_conflict: {
    words: "Its id is known already, with other data.",
    cure: "Re-drive it as a new event, or set dedupe.onConflict of the channel.",
  },
  invalid_body: {
    words: "The body cannot be read as its content type says.",
    cure: "Ask the sender to mend the body or its Content-Type.",
  },
  id_missing: { words: "The idPath yields no id.", cure: "Mend the idPath, then re-drive." },
  payload_missing: { words: "The payloadPath yields nothing.", cure: "Mend the payloadPath, then re-drive." },
  schema_mismatch: {
    words: "The data does not fit the schema of its definition.",
    cure: "Mend the schema, see by a preview what it would release, then re-drive.",
  },
  invalid_cloudevent: {
    words: "It is no valid CloudEvent.",
    cure: "Ask the sender to mend the attribute that is named.",
  },
  replayed: {
    words: "The same signed bytes came before under another id or type.",
    cure: "Re-drive it if the provider meant it; otherwise somebody repeats an old request.",
  },
  too_deep: {
    words: "It nests deeper than the channel allows.",
    cure: "Raise limits.maxDepth of the channel, then re-drive.",
  },
  path_budget: {
    words: "Its paths visit too much of it, or its events are too large together.",
    cure: "Narrow the paths of the definitions, then re-drive.",
  },
  paused: {
    words: "It came while the channel was paused.",
    cure: "Resume the channel: what is kept is run by itself, in order of arrival.",
  },
  signature_invalid: {
    words: "Its signature is not valid.",
    cure: "Look at the channel's secret and scheme. A sample is kept; it is never run again.",
  },
};

export const REASON_NAMES: readonly string[] = Object.keys(REASONS);

/** A reason that is younger than this page is told by its name alone. */
export const wordsOf = (reason: string): ReasonWords =>
  REASONS[reason] ?? { words: reason, cure: "The documentation of quarantine names it." };
