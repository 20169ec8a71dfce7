import type { ChannelIdentity } from "../event/channel.ts";
import type { OutgoingEvent } from "../event/event.ts";
import type { IngestResult } from "../event/ingest.ts";
import { isListed, type Outcome, type PublishedStatus } from "../event/outcome.ts";
import { STATUS_OF } from "../http/errors.ts";
import { countQuarantined, countRejection, countType, type EventCounts } from "../metrics/event-counts.ts";
import type { Metrics } from "../metrics.ts";
import type { CompiledChannel } from "./compile-channel.ts";
import { type DeliveryResult, REJECTION_CODES, toDeliveryLabel } from "./delivery-result.ts";

export interface ResultCountsDeps {
  readonly metrics: Pick<
    Metrics,
    "deliveries" | "deliveriesMissed" | "events" | "quarantined" | "unsetAttributes" | "countsOf"
  >;
}

type Accepted = Extract<IngestResult, { kind: "accepted" }>;

/** Creates the functions that count the results of deliveries. Each delivery, item and event is counted once. */
export function createResultCounts({ metrics }: ResultCountsDeps) {
  /** Counts the result of a delivery. */
  function countResult(
    channel: Pick<CompiledChannel, "identity">,
    result: DeliveryResult,
    counts: EventCounts = metrics.countsOf(channel.identity),
  ): void {
    if (result.kind === "replied") return;
    if (result.kind === "accepted") {
      counts.received += result.outcome.received;
      if (result.isCounted !== true) countAccepted(channel, counts, result);
      return;
    }
    metrics.deliveries.add(channel.identity.kind, toDeliveryLabel(result));
    switch (result.kind) {
      case "routed":
        counts.accepted++;
        return;
      case "handshake":
        counts.handshake++;
        return;
      case "unverified":
        counts.unverified++;
        countRejection(counts, STATUS_OF.unauthenticated);
        return;
      case "refused":
      case "failed":
        counts[result.kind]++;
        countRejection(counts, STATUS_OF[result.response.code]);
        return;
      case "rejected":
      case "tooManyItems":
        counts.refused++;
        countRejection(counts, STATUS_OF[REJECTION_CODES[result.kind]]);
        return;
      default:
        result satisfies never;
    }
  }

  /** Counts an accepted delivery, except for its received items. */
  function countAccepted(
    { identity }: Pick<CompiledChannel, "identity">,
    counts: EventCounts,
    { outcome }: Pick<Accepted, "outcome">,
  ): void {
    metrics.deliveries.add(identity.kind, "accepted");
    counts.accepted++;
    countEvents(identity, counts, outcome);
    countFailures(identity, counts, outcome);
  }

  /** Counts a delivery that was stored until now. Its items were counted as received when it arrived. */
  function countDrained(channel: Pick<CompiledChannel, "identity">, result: IngestResult): void {
    const counts = metrics.countsOf(channel.identity);
    if (result.kind === "accepted") countAccepted(channel, counts, result);
    // The delivery goes to quarantine, because its sender already has a response.
    else countQuarantined(counts, "invalid_body");
  }

  /**
   * Counts the missed events that a comparison with the provider's API has found. Events that the channel had received are not counted
   * again. Returns false if there is nothing else.
   */
  function countReconciled({ identity }: Pick<CompiledChannel, "identity">, result: Accepted): boolean {
    const { published, quarantined, events } = result.outcome;
    const { kind } = identity;
    if (published + quarantined === 0) return false;
    const counts = metrics.countsOf(identity);
    counts.received += published + quarantined;
    const missed = events.filter(({ status }) => status !== "duplicate");
    countEvents(identity, counts, { published, duplicates: 0, ignored: 0, events: missed }, "recovered");
    countFailures(identity, counts, result.outcome);
    if (published > 0) metrics.deliveriesMissed.add(kind, "recovered");
    else if (isListed(result.outcome)) metrics.deliveriesMissed.add(kind, "listed");
    return true;
  }

  function countEvents(
    { kind }: ChannelIdentity,
    counts: EventCounts,
    {
      published,
      duplicates,
      ignored,
      events,
    }: Pick<Outcome, "published" | "duplicates" | "ignored" | "events">,
    status: PublishedStatus = "published",
  ): void {
    for (const event of events) countType(counts, event.type)[event.status]++;
    counts.ignored += ignored;
    if (published > 0) metrics.events.add(kind, status, published);
    if (duplicates > 0) metrics.events.add(kind, "duplicate", duplicates);
    if (ignored > 0) metrics.events.add(kind, "ignored", ignored);
  }

  function countFailures(
    { kind }: ChannelIdentity,
    counts: EventCounts,
    { quarantine }: Pick<Outcome, "quarantine">,
  ): void {
    for (const { reason } of quarantine) {
      countQuarantined(counts, reason);
      metrics.quarantined.add(kind, reason);
    }
  }

  /** Counts items that an intake holds. */
  function countHeld({ identity }: Pick<CompiledChannel, "identity">, reason: string, items: number): void {
    const counts = metrics.countsOf(identity);
    counts.received += items;
    countQuarantined(counts, reason, items);
  }

  /** Counts attributes that definitions should set, but for which the items have no usable value. */
  function countUnset(
    { identity }: Pick<CompiledChannel, "identity">,
    events: readonly OutgoingEvent[],
  ): void {
    for (const { unset = [] } of events)
      for (const attribute of unset) metrics.unsetAttributes.inc({ kind: identity.kind, attribute });
  }

  /** Counts the events of a redriven delivery. Its delivery and its failed items were counted when they arrived. */
  function countRedriven(
    { identity }: Pick<CompiledChannel, "identity">,
    { outcome }: Accepted,
    status: PublishedStatus,
  ): void {
    countEvents(identity, metrics.countsOf(identity), outcome, status);
  }

  return { countResult, countDrained, countReconciled, countRedriven, countHeld, countUnset };
}
