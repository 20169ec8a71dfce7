import type { ChannelIdentity } from "../event/channel.ts";
import type { OutgoingEvent } from "../event/event.ts";
import type { SourcePosition } from "../event/received.ts";
import type { QuarantineWrite } from "./quarantine-record.ts";
import type { RedisBus } from "./redis.ts";

export interface PublishPolicy {
  readonly dedupeWindowMs: number;
  /** What a known id with other data is: reported as a conflict, or taken for a duplicate. */
  readonly onConflict: "report" | "duplicate";
  readonly maxEntries: number;
  /** Of each topic; handed on to `onAppended`, by which retention keeps up with busy topics. */
  readonly maxBytes?: number;
}

/** One delivery. */
export interface PublishBatch {
  readonly channel: ChannelIdentity;
  readonly events: readonly OutgoingEvent[];
  readonly policy: PublishPolicy;
  /** Items of the same delivery that are known to have failed. */
  readonly quarantine?: QuarantineWrite;
  /** Quarantine records that this publish replaces (a re-drive). */
  readonly release?: readonly string[];
  /** Of a pull source: where it stands once this delivery is written. */
  readonly position?: SourcePosition;
}

export type Receipt =
  | { readonly status: "published" | "duplicate"; readonly entryId: string }
  | { readonly status: "conflict" };

/** Parallel to the batch's `events` and to its `quarantine.items`. */
export interface PublishResult {
  readonly receipts: readonly Receipt[];
  readonly quarantineIds: readonly string[];
}

/**
 * Appends the events of a delivery, each at most once within the dedupe window, and writes its quarantine records.
 * Resolves when all of it is as durable as the gateway promises.
 *
 * @throws UnavailableError when it was refused or its outcome is unknown; a retry is safe.
 * @throws StaleSourceError when `position` is no longer its owner's.
 */
export type Publish = (
  batch: PublishBatch,
  options: { readonly signal: AbortSignal },
) => Promise<PublishResult>;

export interface PublishDeps {
  readonly redis: RedisBus;
  /** Called for each event appended under a policy with `maxBytes`. */
  readonly onAppended?: (topic: string, bytes: number, maxBytes: number) => void;
}

export declare function createPublish(deps: PublishDeps): Publish;
