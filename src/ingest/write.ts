import type { Publish } from "../bus/publish/publish.ts";
import type { QuarantineStore } from "../bus/quarantine/quarantine.ts";
import type { QuarantineItem } from "../bus/quarantine/quarantine-record.ts";
import { isTestEvent, TEST_EXTENSION } from "../event/cloud-event.ts";
import type { OutgoingEvent } from "../event/event.ts";
import type { IngestFetched, IngestResult } from "../event/ingest.ts";
import type { EventReceipt, ItemFailure } from "../event/outcome.ts";
import type { RawRequest, SourcePosition, VerifiedDelivery } from "../event/received.ts";
import { createSignedMark } from "../normalize/entry.ts";
import type { Normalized, Selection } from "../normalize/normalize.ts";
import { type CompiledChannel, toPublishPolicy } from "./compiled-channel.ts";
import type { DeliveryRecorder } from "./delivery-recorder.ts";
import type { Normalizer } from "./normalizer.ts";
import { createOutcome, findConflicts, tooManyItemsFailure, toQuarantineReceipts } from "./outcome.ts";

export interface WriterDeps {
  readonly normalize: Normalizer;
  readonly publish: Publish;
  readonly quarantine: Pick<QuarantineStore, "put">;
  /** Called with each result, to update metrics. */
  readonly observe: (channel: CompiledChannel, result: IngestResult) => void;
  readonly recorder: Pick<DeliveryRecorder, "settled">;
  /** How long a sender waits while its delivery is validated, in milliseconds. Default: 4,000. */
  readonly maxCheckMs?: number | undefined;
}

/**
 * Default time in milliseconds after which the sender of a delivery in validation receives 503. Many senders give up after five seconds.
 * When they retry, the schemas are already compiled.
 */
const MAX_CHECK_MS = 4_000;

/** One quarantined item to process again. `id` is the id of its quarantine record. */
export interface RedriveRequest extends Selection {
  readonly delivery: VerifiedDelivery;
  /** Whether the item was buffered during a pause. Such an item is processed like a new delivery and may be a replay. */
  readonly wasPaused?: boolean;
}

export type Writer = ReturnType<typeof createWriter>;
export type Redrive = Writer["redrive"];
export type PublishTest = Writer["publishTest"];

/**
 * Creates the functions that write verified deliveries to the bus. Each first normalizes the delivery, then publishes its events and
 * quarantines the items that failed in the same write. Conflicts are quarantined after that.
 */
export function createWriter(deps: WriterDeps) {
  const { normalize, publish, quarantine, observe, recorder, maxCheckMs = MAX_CHECK_MS } = deps;

  function write(
    channel: CompiledChannel,
    delivery: VerifiedDelivery,
    options: WriteOptions,
  ): IngestResult | Promise<IngestResult> {
    // Only a push delivery has a sender that waits, so validation of other deliveries may take as long as it needs.
    const isPushed = options.redrive === undefined && options.position === undefined;
    const normalized = normalize(channel.rules, delivery, options.redrive, isPushed ? maxCheckMs : undefined);
    return normalized instanceof Promise
      ? normalized.then((settled) => put(channel, delivery, options, settled))
      : put(channel, delivery, options, normalized);
  }

  function put(
    channel: CompiledChannel,
    delivery: VerifiedDelivery,
    { signal, redrive, position, request, onItems }: WriteOptions,
    normalized: Normalized,
  ): IngestResult | Promise<IngestResult> {
    if (normalized.kind === "normalized") onItems?.(channel, normalized.received);
    const settle = (result: IngestResult): IngestResult => {
      observe(channel, result);
      if (redrive === undefined) recorder.settled(channel, delivery, result, request);
      return result;
    };
    if (normalized.kind === "tooManyItems" && position === undefined) return settle(normalized);
    const { received, events, failures } =
      normalized.kind === "tooManyItems"
        ? { received: 1, events: [], failures: [tooManyItemsFailure(normalized.limit)] }
        : normalized;
    if (redrive === undefined && position === undefined && failures.length > 0) {
      const rejectedItems = failures.filter((failure) => getDisposition(channel, failure) === "reject");
      if (rejectedItems.length > 0) return settle({ kind: "rejected", failures: rejectedItems });
    }

    const { identity } = channel;
    const options = { signal, sinceMs: performance.now() };
    const batch = {
      channel: identity,
      events,
      policy: toPublishPolicy(channel),
      quarantine: failures.length > 0 ? { delivery, items: toQuarantineItems(channel, failures) } : undefined,
      release: redrive !== undefined && failures.length === 0 ? [redrive.id] : undefined,
      signed: toReplayMark(channel, delivery, events, redrive),
      position,
    };
    return publish(batch, options).then(({ receipts, quarantineIds }) => {
      const quarantined = toQuarantineReceipts(failures, quarantineIds);
      const accept = () =>
        settle({ kind: "accepted", outcome: createOutcome(received, events, receipts, quarantined) });
      const conflicts = findConflicts(events, receipts);
      if (conflicts.length === 0) return accept();
      const items = toQuarantineItems(channel, conflicts);
      // Only this last write moves the cursor. If the gateway stops before it, the delivery is read again and no conflict is lost.
      const last = { ...options, ...(position && { position }) };
      return quarantine.put(identity, { delivery, items }, last).then((ids) => {
        quarantined.push(...toQuarantineReceipts(conflicts, ids));
        return accept();
      });
    });
  }

  return {
    /**
     * Writes a verified delivery.
     *
     * @throws UnavailableError
     */
    write,
    /** Writes a delivery that is already normalized. */
    put,
    ingestFetched: (async (
      channel: CompiledChannel,
      delivery: VerifiedDelivery,
      options: WriteOptions,
    ): Promise<IngestResult> => write(channel, delivery, options)) satisfies IngestFetched<CompiledChannel>,
    /**
     * Publishes a test delivery. Its events are marked as tests. They are not deduplicated and their ids are not remembered. Failures are
     * returned instead of quarantined.
     *
     * @throws UnavailableError
     */
    async publishTest(
      channel: CompiledChannel,
      delivery: VerifiedDelivery,
      { signal }: { readonly signal: AbortSignal },
    ): Promise<Tested> {
      const normalized = await normalize(channel.rules, delivery, undefined, maxCheckMs);
      if (normalized.kind === "tooManyItems")
        return { received: 0, events: [], failures: [tooManyItemsFailure(normalized.limit)] };
      const { received, failures } = normalized;
      const events = normalized.events.map(toTestEvent);
      const batch = { channel: channel.identity, events, policy: toPublishPolicy(channel) };
      const { receipts } = events.length === 0 ? { receipts: [] } : await publish(batch, { signal });
      return { received, events: createOutcome(received, events, receipts, []).events, failures };
    },
    /** Moves the cursor of a source without publishing a delivery. Throws the same errors as `IngestFetched`. */
    async movePosition(
      channel: CompiledChannel,
      { signal, position }: { readonly signal: AbortSignal; readonly position: SourcePosition },
    ): Promise<void> {
      const batch = { channel: channel.identity, events: [], policy: toPublishPolicy(channel), position };
      await publish(batch, { signal });
    },
    /**
     * Processes a quarantined item with the current definitions. The write that publishes its events also deletes its quarantine record. An
     * item that fails again stays in quarantine.
     *
     * @throws UnavailableError like `Ingest`
     */
    redrive: async (
      channel: CompiledChannel,
      request: RedriveRequest,
      { signal }: { readonly signal: AbortSignal },
    ): Promise<IngestResult> => write(channel, request.delivery, { signal, redrive: request }),
  };
}

/** The result of a test delivery. */
export interface Tested {
  readonly received: number;
  readonly events: readonly EventReceipt[];
  readonly failures: readonly ItemFailure[];
}

function toTestEvent({ fields, bytes, ...event }: OutgoingEvent): OutgoingEvent {
  // The delivery is itself a test event whose sender set the extension for tests. The sender's value is not replaced.
  if (isTestEvent(fields)) return { ...event, identity: "", fields, bytes };
  const marked = [...fields, TEST_EXTENSION, "true"];
  return { ...event, identity: "", fields: marked, bytes: bytes + TEST_EXTENSION.length + 4 };
}

/** Returns how to detect a replay. A redrive is a decision of the operator, so it never counts as a replay. */
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
  /** The request as received. Missing if the delivery was fetched. */
  readonly request?: RawRequest;
  readonly onItems?: ((channel: CompiledChannel, items: number) => void) | undefined;
}

/** Returns where a failed item goes according to the channel's settings. */
function getDisposition(
  { config }: CompiledChannel,
  { reason }: ItemFailure,
): "reject" | QuarantineItem["keep"] {
  if (reason !== "no_match") return config.onInvalid === "reject" ? "reject" : "all";
  switch (config.onNoMatch) {
    case "reject":
      return "reject";
    case "quarantine":
      return "all";
    case "keepLast":
      return "newest";
    default:
      return config.onNoMatch satisfies never;
  }
}

export function toQuarantineItems(
  channel: CompiledChannel,
  failures: readonly ItemFailure[],
): readonly QuarantineItem[] {
  return failures.map((failure) => {
    const disposition = getDisposition(channel, failure);
    // Conflicts, and items that fail again in a redrive, are always kept, because they can no longer be rejected.
    return { failure, keep: disposition === "newest" ? "newest" : "all" };
  });
}
