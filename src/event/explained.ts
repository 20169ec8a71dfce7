import type { OutgoingEvent } from "./event.ts";
import type { ItemFailure } from "./outcome.ts";
import type { StructuredEvent } from "./typed-event.ts";

export interface ExplainedPath {
  readonly path: string;
  /** The first ten values as text, each truncated. Strings are unquoted, numbers are as the sender wrote them, and all others are JSON. */
  readonly values: readonly string[];
  /** True if the path selects more values than are listed. */
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

/** The part of an item that violates the `when` of a definition. */
export interface Exclusion {
  /** JSON Pointer into the value that `when` is evaluated on. */
  readonly path: string;
  readonly detail: string;
}

export interface ExplainedRule extends ExplainedDefinition {
  readonly failure: Pick<ItemFailure, "reason" | "path" | "detail"> | null;
  /** Why `when` excludes the item. `null` if it does not. Missing in records that an earlier version has written. */
  readonly ignored?: Exclusion | null;
}

/** Maximum length of event data in an explanation, in characters. Longer data is left out. */
export const MAX_EXPLAINED_DATA_CHARS = 4_096;

export interface ExplainedEvent extends Pick<OutgoingEvent, "id" | "type" | "topic"> {
  /** Data as text. `null` if the event has no data or binary data. */
  readonly data: string | null;
  /** The event in JSON format, without data that is longer than `MAX_EXPLAINED_DATA_CHARS`. */
  readonly event: StructuredEvent;
  /** Result of publishing: `new` would be published, `duplicate` skipped. For a `conflict`, the field `dedupe.onConflict` decides. */
  readonly status: "new" | "duplicate" | "conflict";
  /** Id of the stream entry that already has this event id. `null` if there is none. */
  readonly entryId: string | null;
}

/** Events and failures of one item. `item` is `null` for the whole delivery. */
export interface ExplainedItem {
  readonly item: number | null;
  readonly events: readonly ExplainedEvent[];
  readonly failures: readonly ItemFailure[];
  /** Results in the order of the channel's event definitions. Empty if the item is unreadable or not among the first few items. */
  readonly definitions: readonly ExplainedRule[];
  /** Event type of the definition that came closest to matching, if no definition matched. */
  readonly closest: string | null;
}
