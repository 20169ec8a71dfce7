export interface ReasonDescription {
  readonly description: string;
  readonly suggestedAction: string;
}

const REASONS: Readonly<Record<string, ReasonDescription>> = {
  no_match: {
    description: "No definition matches the item.",
    suggestedAction: "Add a matching definition, or fix the typePath of the closest one. Then redrive.",
  },
  id_conflict: {
    description: "An event with the same id but different data already exists.",
    suggestedAction: "Redrive it as a new event, or change the channel's dedupe.onConflict setting.",
  },
  invalid_body: {
    description: "The body does not match its content type.",
    suggestedAction: "Ask the sender to fix the body or its Content-Type.",
  },
  id_missing: { description: "The idPath finds no id.", suggestedAction: "Fix the idPath, then redrive." },
  payload_missing: {
    description: "The payloadPath finds no value.",
    suggestedAction: "Fix the payloadPath, then redrive.",
  },
  filter_failed: {
    description: "The when of a definition could not be evaluated, so the item was not ignored.",
    suggestedAction: "Simplify the when, check the preview, then redrive.",
  },
  schema_mismatch: {
    description: "The data does not match the schema of its definition.",
    suggestedAction: "Fix the schema, check the preview, then redrive.",
  },
  invalid_cloudevent: {
    description: "The item is not a valid CloudEvent.",
    suggestedAction: "Ask the sender to fix the named attribute.",
  },
  replayed: {
    description: "The same signed bytes arrived before with another id or type.",
    suggestedAction: "Redrive it if the provider sent it on purpose. Otherwise this may be a replay attack.",
  },
  too_deep: {
    description: "The item is nested deeper than the channel allows.",
    suggestedAction: "Raise limits.maxDepth of the channel, then redrive.",
  },
  path_budget: {
    description: "The paths visit too many nodes, or the resulting events are too large in total.",
    suggestedAction: "Narrow the paths of the definitions, then redrive.",
  },
  paused: {
    description: "The item arrived while the channel was paused.",
    suggestedAction:
      "Resume the channel. Inlet then processes the stored items automatically, in order of arrival.",
  },
  signature_invalid: {
    description: "The signature is not valid.",
    suggestedAction: "Check the channel's secret and verification scheme. This sample cannot be redriven.",
  },
  window_passed: {
    description:
      "A poll found the item, which is older than the channel remembers ids. It may be published already.",
    suggestedAction: "Check whether your readers have the event. Redrive it to publish it, or delete it.",
  },
  over_limit: {
    description:
      "The delivery came through an intake while the channel or its organization was over a limit.",
    suggestedAction: "Raise the limit or wait, then redrive.",
  },
  no_route: {
    description: "No path of the intake's routeBy finds a route key in the item.",
    suggestedAction: "Fix routeBy of the intake, then redrive.",
  },
  no_install: {
    description: "No install of the blueprint has the item's route key.",
    suggestedAction:
      "Set the route key of an install. Inlet then publishes the stored items automatically, in order of arrival.",
  },
};

export const REASON_NAMES: readonly string[] = Object.keys(REASONS);

/** Describes a failure reason. A reason that this version of the console does not know is shown by its name. */
export const describeReason = (reason: string): ReasonDescription =>
  REASONS[reason] ?? {
    description: reason,
    suggestedAction: "See the quarantine page of the documentation.",
  };
