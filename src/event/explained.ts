import type { OutgoingEvent } from "./event.ts";
import type { ItemFailure } from "./outcome.ts";
import type { StructuredEvent } from "./typed-event.ts";

export interface ExplainedPath {
  readonly path: string;
  /** The first ten values, each truncated: strings verbatim, numbers as spelled, everything else as JSON. */
  readonly values: readonly string[];
  /** True if the path selected more values than `values` lists. */
  readonly isCut: boolean;
}

export interface ExplainedDefinition {
  readonly type: string;
  readonly topic: string;
  readonly matches: boolean;
  /** `null` when the definition has no `typePath`. */
  readonly typePath: ExplainedPath | null;
  readonly idPath: ExplainedPath | null;
  readonly payloadPath: ExplainedPath | null;
}

export interface ExplainedRule extends ExplainedDefinition {
  readonly failure: Pick<ItemFailure, "reason" | "path" | "detail"> | null;
}

/** Maximum length of event data in an explanation. Longer data is omitted. */
export const MAX_EXPLAINED_DATA_CHARS = 4_096;

export interface ExplainedEvent extends Pick<OutgoingEvent, "id" | "type" | "topic"> {
  /** Data as text. `null` when the event has no data or binary data. */
  readonly data: string | null;
  /** The event, without its data if that is longer than `MAX_EXPLAINED_DATA_CHARS`. */
  readonly event: StructuredEvent;
  /** A `new` event would be appended, and a `duplicate` would be skipped. The field `dedupe.onConflict` decides about a `conflict`. */
  readonly status: "new" | "duplicate" | "conflict";
  /** Id of the existing stream entry with the same event id. */
  readonly entryId: string | null;
}

/** Events and failures of one item. `item` is `null` for the delivery as a whole. */
export interface ExplainedItem {
  readonly item: number | null;
  readonly events: readonly ExplainedEvent[];
  readonly failures: readonly ItemFailure[];
  /** Results in the order of the channel's definitions. Empty for unreadable items and for all but the first few items. */
  readonly definitions: readonly ExplainedRule[];
  /** Event type of the definition that came closest to matching, if none matched. */
  readonly closest: string | null;
}
