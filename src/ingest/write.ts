import type { Publish } from "../bus/publish/publish.ts";
import type { PublishPolicy, Receipt } from "../bus/publish/publish-batch.ts";
import type { QuarantineStore } from "../bus/quarantine/quarantine.ts";
import type { QuarantineItem } from "../bus/quarantine/quarantine-record.ts";
import type { OutgoingEvent } from "../event/event.ts";
import type { IngestResult } from "../event/ingest.ts";
import {
  type EventReceipt,
  type ItemFailure,
  type Outcome,
  type PublishedStatus,
  type QuarantineReceipt,
  tooManyItemsFailure,
} from "../event/outcome.ts";
import type { SourcePosition, VerifiedDelivery } from "../event/received.ts";
import { createSignedMark } from "../normalize/entry.ts";
import type { Normalized, Selection } from "../normalize/normalize.ts";
import type { CompiledChannel } from "./compile-channel.ts";
import type { Conclude } from "./conclude.ts";
import type { DeliverySpans } from "./delivery-spans.ts";
import { MAX_CHECK_MS, type Normalizer } from "./normalizer.ts";
import { toTestEvent } from "./to-test-event.ts";

export interface WriterDeps {
  readonly normalize: Normalizer;
  readonly publish: Publish;
  readonly quarantine: Pick<QuarantineStore, "put">;
  readonly concludeFetched: Conclude["concludeFetched"];
  readonly countResult: Conclude["countResult"];
  readonly concludeRedriven: Conclude["concludeRedriven"];
  readonly countUnset: Conclude["countUnset"];
  /** `undefined` if the gateway exports no traces. */
  readonly spans?: DeliverySpans | undefined;
  /** Maximum time that a test delivery waits for its validation, in ms. Default: `MAX_CHECK_MS`. */
  readonly maxCheckMs?: number | undefined;
}

/** A quarantined item to process again. `id` is the id of its quarantine record. */
export interface RedriveRequest extends Selection {
  readonly delivery: VerifiedDelivery;
  /** Whether the item was buffered during a pause. If so, it is checked for replays like a new delivery. */
  readonly wasPaused?: boolean;
}

export type Writer = ReturnType<typeof createWriter>;
export type Redrive = Writer["redrive"];
export type PublishTest = Writer["publishTest"];

/**
 * Creates the functions that publish verified deliveries. One write publishes the valid events and quarantines the failed items. Events
 * whose ids conflict are quarantined in a second write.
 */
export function createWriter(deps: WriterDeps) {
  const { normalize, publish, quarantine, spans, maxCheckMs = MAX_CHECK_MS } = deps;

  function publishNormalized(
    channel: CompiledChannel,
    delivery: VerifiedDelivery,
    { signal, redrive, position }: WriteOptions,
    normalized: Normalized,
  ): IngestResult | Promise<IngestResult> {
    if (normalized.kind === "tooManyItems" && position === undefined) return normalized;
    const { received, ignored, events, failures } =
      normalized.kind === "tooManyItems"
        ? { received: 1, ignored: 0, events: [], failures: [tooManyItemsFailure(normalized.limit)] }
        : normalized;
    if (channel.rules.setsAttributes) deps.countUnset(channel, events);
    if (redrive === undefined && position === undefined && failures.length > 0) {
      const rejectedItems = failures.filter((failure) => getDisposition(channel, failure) === "reject");
      if (rejectedItems.length > 0) return { kind: "rejected", failures: rejectedItems };
    }
    if (events.length + failures.length === 0 && redrive === undefined && position === undefined)
      return { kind: "accepted", outcome: createOutcome({ received, ignored }, [], [], []) };

    const { identity } = channel;
    // The items of a paused delivery are processed for the first time, so their records are new.
    const redriven = redrive?.wasPaused ? undefined : redrive?.id;
    const options = { signal, sinceMs: performance.now() };
    const batch = {
      channel: identity,
      events,
      policy: toPublishPolicy(channel),
      quarantine:
        failures.length > 0 ? { delivery, items: toQuarantineItems(channel, failures), redriven } : undefined,
      release: redrive !== undefined && failures.length === 0 ? [redrive.id] : undefined,
      signed: toReplayMark(channel, delivery, events, redrive),
      position,
    };
    return publish(batch, options).then(({ receipts, quarantineIds }) => {
      const quarantined = toQuarantineReceipts(failures, quarantineIds);
      const accept = (): IngestResult => ({
        kind: "accepted",
        outcome: createOutcome(
          { received, ignored },
          events,
          receipts,
          quarantined,
          getPublishedStatus(delivery),
        ),
      });
      const conflicts = findConflicts(events, receipts);
      if (conflicts.length === 0) return accept();
      const items = toQuarantineItems(channel, conflicts);
      // Only this last write moves the cursor. After a crash before this write, the delivery is read again and no conflict is lost.
      const last = { ...options, ...(position && { position }) };
      return quarantine.put(identity, { delivery, items, redriven }, last).then((ids) => {
        quarantined.push(...toQuarantineReceipts(conflicts, ids));
        return accept();
      });
    });
  }

  return {
    /**
     * Publishes the events of a delivery and quarantines its failed items.
     *
     * @throws UnavailableError
     */
    publishNormalized,
    /**
     * Publishes a delivery as a test. Its events are marked as tests, and their ids are neither deduplicated nor remembered. Failures are
     * returned instead of quarantined.
     * @throws UnavailableError
     */
    async publishTest(
      channel: CompiledChannel,
      delivery: VerifiedDelivery,
      { signal }: { readonly signal: AbortSignal },
    ): Promise<Tested> {
      if (channel.wakes?.publishesNothing) return { received: 0, ignored: 0, events: [], failures: [] };
      const normalized = await normalize(channel.rules, delivery, undefined, maxCheckMs);
      if (normalized.kind === "tooManyItems")
        return { received: 0, ignored: 0, events: [], failures: [tooManyItemsFailure(normalized.limit)] };
      const { received, ignored, failures } = normalized;
      const events = normalized.events.map(toTestEvent);
      const batch = { channel: channel.identity, events, policy: toPublishPolicy(channel) };
      const { receipts } = events.length === 0 ? { receipts: [] } : await publish(batch, { signal });
      const outcome = createOutcome({ received, ignored }, events, receipts, []);
      return { received, ignored, events: outcome.events, failures };
    },
    /** Moves a source's cursor without publishing events. Throws the same errors as `GatheredWrite.write`. */
    async movePosition(
      channel: CompiledChannel,
      { signal, position }: { readonly signal: AbortSignal; readonly position: SourcePosition },
    ): Promise<void> {
      const batch = { channel: channel.identity, events: [], policy: toPublishPolicy(channel), position };
      await publish(batch, { signal });
    },
    /**
     * Processes a quarantined item with the current definitions. Deletes its quarantine record on success; otherwise the item stays in
     * quarantine.
     *
     * @throws UnavailableError like `Ingest`
     */
    redrive: async (
      channel: CompiledChannel,
      request: RedriveRequest,
      { signal }: { readonly signal: AbortSignal },
    ): Promise<IngestResult> => {
      const delivery = spans === undefined ? request.delivery : spans.startRedrive(request.delivery);
      const normalized = await normalize(channel.rules, delivery, request);
      const options = { signal, redrive: request };
      const result = await publishNormalized(channel, delivery, options, normalized);
      deps.concludeRedriven(channel, delivery, result, request);
      return result;
    },
  };
}

export function toPublishPolicy({ config, rules }: CompiledChannel): PublishPolicy {
  const { dedupe, retention } = config;
  return {
    dedupeWindowMs: dedupe.windowSeconds * 1000,
    conflict: rules.conflictRule.conflict,
    maxEntries: retention.maxEntries,
    maxBytes: retention.maxBytes,
  };
}

export interface Tested {
  readonly received: number;
  readonly ignored: number;
  readonly events: readonly EventReceipt[];
  readonly failures: readonly ItemFailure[];
}

/** Returns the key that detects replayed deliveries. A redrive never counts as a replay, because an operator requested it. */
function toReplayMark(
  { config, rules }: CompiledChannel,
  { boundTo }: VerifiedDelivery,
  events: readonly OutgoingEvent[],
  redrive: RedriveRequest | undefined,
) {
  if (boundTo === undefined || events.length === 0 || config.dedupe.windowSeconds === 0) return undefined;
  if (redrive !== undefined && !redrive.wasPaused) return undefined;
  return createSignedMark(rules, boundTo, events);
}

export interface WriteOptions {
  readonly signal: AbortSignal;
  readonly redrive?: RedriveRequest;
  readonly position?: SourcePosition;
}

function getDisposition(
  { config }: CompiledChannel,
  { isHeartbeat, reason }: ItemFailure,
): "reject" | QuarantineItem["keep"] {
  if (isHeartbeat) return "newest";
  if (reason !== "no_match") return config.onInvalid === "reject" ? "reject" : "all";
  if (config.onNoMatch === "reject") return "reject";
  return config.onNoMatch === "quarantine" ? "all" : "newest";
}

export function toQuarantineItems(
  channel: CompiledChannel,
  failures: readonly ItemFailure[],
): readonly QuarantineItem[] {
  return failures.map((failure) => {
    const disposition = getDisposition(channel, failure);
    // Quarantines conflicts even if the channel rejects invalid items, because the sender already has its response.
    return { failure, keep: disposition === "newest" ? "newest" : "all" };
  });
}

const NO_FAILURES: readonly ItemFailure[] = [];

const CONFLICTS = {
  conflict: { reason: "id_conflict", detail: (id: string) => `the id ${id} is already used with other data` },
  replayed: {
    reason: "replayed",
    detail: (id: string) => `the same signed bytes arrived earlier with an id or type other than ${id}`,
  },
} as const;

/** Converts events with a conflicting or replayed id to failures. Events of one item with the same reason share one failure. */
export function findConflicts(
  events: readonly OutgoingEvent[],
  receipts: readonly Receipt[],
): readonly ItemFailure[] {
  if (!receipts.some(isConflict)) return NO_FAILURES;
  return (["conflict", "replayed"] as const).flatMap((status) => {
    const conflicting = events.filter((_, i) => receipts[i]?.status === status);
    const { reason, detail } = CONFLICTS[status];
    return [...Map.groupBy(conflicting, ({ item }) => item)].map(([item, ofItem]) => ({
      item,
      reason,
      detail: detail(JSON.stringify(ofItem[0]?.id)),
      definitions: ofItem.map(({ type }) => type),
    }));
  });
}

const isConflict = (receipt: Receipt): receipt is Extract<Receipt, { status: keyof typeof CONFLICTS }> =>
  receipt.status in CONFLICTS;

export function toQuarantineReceipts(
  failures: readonly ItemFailure[],
  ids: readonly string[],
): QuarantineReceipt[] {
  return failures.map(({ reason, path, hint }, i) => {
    const id = ids[i];
    if (id === undefined) throw new Error("Redis returned no record id for a quarantined item");
    return { id, reason, ...(path !== undefined && { path }), ...(hint !== undefined && { hint }) };
  });
}

export const getPublishedStatus = ({ reconciled }: VerifiedDelivery): PublishedStatus =>
  reconciled === undefined ? "published" : "recovered";

export function createOutcome(
  { received, ignored }: Pick<Outcome, "received" | "ignored">,
  events: readonly OutgoingEvent[],
  receipts: readonly Receipt[],
  quarantine: readonly QuarantineReceipt[],
  publishedStatus: PublishedStatus = "published",
): Outcome {
  const eventReceipts: EventReceipt[] = [];
  let published = 0;
  events.forEach(({ id, type, topic }, i) => {
    const receipt = receipts[i];
    if (receipt === undefined) throw new Error("Redis returned no receipt for an event");
    if (isConflict(receipt)) return;
    const isNew = receipt.status === "published";
    if (isNew) published++;
    const status = isNew ? publishedStatus : receipt.status;
    eventReceipts.push({ id, type, topic, entryId: receipt.entryId, status });
  });
  return {
    received,
    published,
    duplicates: eventReceipts.length - published,
    ignored,
    quarantined: quarantine.length,
    events: eventReceipts,
    quarantine,
  };
}
