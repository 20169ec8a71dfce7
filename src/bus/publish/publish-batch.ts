import type { ChannelIdentity } from "../../event/channel.ts";
import type { ConflictRule } from "../../event/dedupe.ts";
import type { OutgoingEvent, SignedMark } from "../../event/event.ts";
import type { SourcePosition } from "../../event/received.ts";
import type { QuarantineWrite } from "../quarantine/quarantine-record.ts";

export interface PublishPolicy {
  readonly dedupeWindowMs: number;
  readonly conflict: ConflictRule["conflict"];
  readonly maxEntries: number;
  /** Maximum bytes per topic. Publishing does not enforce it, but passes it to `onAppended` so that busy topics can be trimmed early. */
  readonly maxBytes?: number;
}

export interface PublishBatch {
  readonly channel: ChannelIdentity;
  readonly events: readonly OutgoingEvent[];
  readonly policy: PublishPolicy;
  /** Items of the same delivery that failed before publishing, to be stored as quarantine records. */
  readonly quarantine?: QuarantineWrite | undefined;
  /**
   * Ids of the quarantine records that these events come from. The records are deleted, unless an event id is already used with
   * other data.
   */
  readonly release?: readonly string[] | undefined;
  /**
   * Signed bytes of the delivery, if the channel uses them to detect replays. They are remembered for the dedupe window. If they arrive
   * again with other event ids or types, the delivery is a replay: no new event is published, and known events are reported as duplicates.
   */
  readonly signed?: SignedMark | undefined;
  /** Position of the pull source after this delivery. It is not stored if an event id is already used with other data. */
  readonly position?: SourcePosition | undefined;
}

export type Receipt =
  | { readonly status: "published" | "duplicate"; readonly entryId: string }
  | { readonly status: "conflict" | "replayed" };

/** Results in the given order: one receipt for each event, and one id for each quarantined item. */
export interface PublishResult {
  readonly receipts: readonly Receipt[];
  readonly quarantineIds: readonly string[];
}
