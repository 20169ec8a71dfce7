import type { OutgoingEvent } from "./event.ts";
import type { ItemFailure } from "./outcome.ts";
import type { StructuredEvent } from "./typed-event.ts";

/** The values that a path yields of an item. */
export interface ExplainedPath {
  readonly path: string;
  /** As they would be compared or taken: strings as they are, numbers as spelled; others as JSON. The first ten, each cut. */
  readonly values: readonly string[];
  /** More than these were found. */
  readonly isCut: boolean;
}

/** How one definition reads an item, whether it matches or not. */
export interface ExplainedDefinition {
  readonly type: string;
  readonly topic: string;
  readonly matches: boolean;
  /** Null where it has none. */
  readonly typePath: ExplainedPath | null;
  readonly idPath: ExplainedPath | null;
  readonly payloadPath: ExplainedPath | null;
}

/** The same, and what is wrong with the item there. */
export interface ExplainedRule extends ExplainedDefinition {
  readonly failure: Pick<ItemFailure, "reason" | "path" | "detail"> | null;
}

/** The longest data that is shown. */
export const MAX_EXPLAINED_DATA_CHARS = 4_096;

/** An event as it would stand on its topic. */
export interface ExplainedEvent extends Pick<OutgoingEvent, "id" | "type" | "topic"> {
  /** As text; null where it has none, or is bytes. */
  readonly data: string | null;
  /** The event itself; without its data where that is longer than `MAX_EXPLAINED_DATA_CHARS`. */
  readonly event: StructuredEvent;
  /** `new` would be appended, `duplicate` would not; the channel's settings decide about a `conflict`. */
  readonly status: "new" | "duplicate" | "conflict";
  /** The entry that has its id already. */
  readonly entryId: string | null;
}

/** The events and failures of one item; null: the delivery as a whole. */
export interface ExplainedItem {
  readonly item: number | null;
  readonly events: readonly ExplainedEvent[];
  /** The records that quarantine would keep. */
  readonly failures: readonly ItemFailure[];
  /** Step by step, in the order of the channel's definitions; empty where the item could not be read, and behind the first items. */
  readonly definitions: readonly ExplainedRule[];
  /** Of an item that no definition matches: the type of the one that came closest. */
  readonly closest: string | null;
}
