import type { Publish } from "../bus/publish/publish.ts";
import type { QuarantineStore } from "../bus/quarantine/quarantine.ts";
import type { QuarantineItem } from "../bus/quarantine/quarantine-record.ts";
import { isTestEvent, TEST_EXTENSION } from "../event/cloud-event.ts";
import type { OutgoingEvent } from "../event/event.ts";
import type { IngestFetched, IngestResult } from "../event/ingest.ts";
import type { EventReceipt, ItemFailure } from "../event/outcome.ts";
import type { RawRequest, SourcePosition, VerifiedDelivery } from "../event/received.ts";
import { signedMarkOf } from "../normalize/entry.ts";
import type { Normalized, Selection } from "../normalize/normalize.ts";
import type { DeliveryRecorder } from "./delivery-recorder.ts";
import { type CompiledChannel, toPublishPolicy } from "./compiled-channel.ts";
import type { Normalizer } from "./normalizer.ts";
import { findConflicts, createOutcome, toQuarantineReceipts, tooManyItemsFailure } from "./outcome.ts";

export interface WriterDeps {
  readonly normalize: Normalizer;
  readonly publish: Publish;
  readonly quarantine: Pick<QuarantineStore, "put">;
  /** Told of each result, for counters. */
  readonly observe: (channel: CompiledChannel, result: IngestResult) => void;
  readonly recorder: Pick<DeliveryRecorder, "settled">;
  /** How long a sender waits for its delivery to be checked; default 4,000. */
  readonly maxCheckMs?: number | undefined;
}

/** A sender is settle 503 after that: many give up after five seconds, and a retry finds compiled what was not. */
const MAX_CHECK_MS = 4_000;

/** One quarantined item to be run redrive; `id` is its record's. */
export interface RedriveRequest extends Selection {
  readonly delivery: VerifiedDelivery;
  /** True where a pause has kept it from being looked at: it is run as if it came now, and may be a replay. */
  readonly wasPaused?: boolean;
}

export type Writer = ReturnType<typeof createWriter>;
export type Redrive = Writer["redrive"];
export type PublishTest = Writer["publishTest"];

/** Puts verified deliveries on the bus: normalizes, publishes together with what is known to fail, then quarantines the conflicts. */
export function createWriter(deps: WriterDeps) {
  const { normalize, publish, quarantine, observe, recorder, maxCheckMs = MAX_CHECK_MS } = deps;

  function write(
    channel: CompiledChannel,
    delivery: VerifiedDelivery,
    options: WriteOptions,
  ): IngestResult | Promise<IngestResult> {
    // A fetched page waits as long as it takes, and its source with it; nobody has to be answered.
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
      const refused = failures.filter((failure) => getDisposition(channel, failure) === "reject");
      if (refused.length > 0) return settle({ kind: "rejected", failures: refused });
    }

    const { identity } = channel;
    const options = { signal, sinceMs: performance.now() };
    const batch = {
      channel: identity,
      events,
      policy: toPublishPolicy(channel),
      quarantine: failures.length > 0 ? { delivery, items: toQuarantineItems(channel, failures) } : undefined,
      release: redrive !== undefined && failures.length === 0 ? [redrive.id] : undefined,
      signed: createSignedMark(channel, delivery, events, redrive),
      position,
    };
    return publish(batch, options).then(({ receipts, quarantineIds }) => {
      const quarantined = toQuarantineReceipts(failures, quarantineIds);
      const accept = () =>
        settle({ kind: "accepted", outcome: createOutcome(received, events, receipts, quarantined) });
      const conflicts = findConflicts(events, receipts);
      if (conflicts.length === 0) return accept();
      const items = toQuarantineItems(channel, conflicts);
      // The position has waited for it: had the gateway died before, nobody would know of the conflict.
      const last = { ...options, ...(position && { position }) };
      return quarantine.put(identity, { delivery, items }, last).then((ids) => {
        quarantined.push(...toQuarantineReceipts(conflicts, ids));
        return accept();
      });
    });
  }

  return {
    /** @throws UnavailableError */
    write,
    /** As `write`, of a delivery that is normalized already. */
    put,
    ingestFetched: (async (
      channel: CompiledChannel,
      delivery: VerifiedDelivery,
      options: WriteOptions,
    ): Promise<IngestResult> => write(channel, delivery, options)) satisfies IngestFetched<CompiledChannel>,
    /**
     * Publishes a delivery by which somebody tries the channel out. Its events say so, and are neither found by their ids nor remembered;
     * what fails is answered and not kept.
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
    /** Moves the cursor of a source without a delivery. Throws as `IngestFetched` does. */
    async movePosition(
      channel: CompiledChannel,
      { signal, position }: { readonly signal: AbortSignal; readonly position: SourcePosition },
    ): Promise<void> {
      const batch = { channel: channel.identity, events: [], policy: toPublishPolicy(channel), position };
      await publish(batch, { signal });
    },
    /**
     * Runs a quarantined item through today's definitions. Its record goes with the write that publishes its events; what
     * fails redrive stays in quarantine.
     *
     * @throws UnavailableError as `Ingest` does.
     */
    redrive: async (
      channel: CompiledChannel,
      request: RedriveRequest,
      { signal }: { readonly signal: AbortSignal },
    ): Promise<IngestResult> => write(channel, request.delivery, { signal, redrive: request }),
  };
}

/** What a test delivery became. */
export interface Tested {
  readonly received: number;
  readonly events: readonly EventReceipt[];
  readonly failures: readonly ItemFailure[];
}

function toTestEvent({ fields, bytes, ...event }: OutgoingEvent): OutgoingEvent {
  // Of a test event of elsewhere it is one of the sender's extensions.
  if (isTestEvent(fields)) return { ...event, identity: "", fields, bytes };
  const marked = [...fields, TEST_EXTENSION, "true"];
  return { ...event, identity: "", fields: marked, bytes: bytes + TEST_EXTENSION.length + 4 };
}

/** A person who runs an item of the quarantine redrive has decided on it: that is no replay. */
function createSignedMark(
  { config, rules }: CompiledChannel,
  { boundTo }: VerifiedDelivery,
  events: readonly OutgoingEvent[],
  redrive: RedriveRequest | undefined,
) {
  if (boundTo === undefined || events.length === 0 || config.dedupe.windowSeconds === 0) return undefined;
  if (redrive !== undefined && !redrive.wasPaused) return undefined;
  return signedMarkOf(rules, boundTo, events);
}

export interface WriteOptions {
  readonly signal: AbortSignal;
  readonly redrive?: RedriveRequest;
  readonly position?: SourcePosition;
  /** As it came; absent: it was fetched. */
  readonly request?: RawRequest;
  readonly onItems?: ((channel: CompiledChannel, items: number) => void) | undefined;
}

/** The channel's settings decide where a failed item goes. */
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
    // Conflicts, and what fails redrive when it is re-driven, are kept whatever the channel says: they cannot be refused any more.
    return { failure, keep: disposition === "newest" ? "newest" : "all" };
  });
}
