import type { Publish } from "../bus/publish/publish.ts";
import { MAX_CALL_BYTES, MAX_CALL_EVENTS } from "../bus/publish/publish-lanes.ts";
import type { QuarantineStore } from "../bus/quarantine/quarantine.ts";
import type { QuarantinedItem } from "../bus/quarantine/quarantine-record.ts";
import type { OutgoingEvent } from "../event/event.ts";
import type { IngestResult } from "../event/ingest.ts";
import { createDeliveryFailure, type Outcome, tooManyItemsFailure } from "../event/outcome.ts";
import type { Normalized, Selection } from "../normalize/normalize.ts";
import type { CompiledChannel } from "./compile-channel.ts";
import type { Conclude } from "./conclude.ts";
import type { DeliverySpans } from "./delivery-spans.ts";
import type { Normalizer } from "./normalizer.ts";
import type { Routes } from "./route/compile-routing.ts";
import type { Route, RouteLimits } from "./route/route-result.ts";
import { createOutcome, type Redrive, toPublishPolicy, toQuarantineReceipts } from "./write.ts";

export interface DrainPausedDeps {
  readonly normalize: Normalizer;
  readonly publish: Publish;
  readonly quarantine: Pick<QuarantineStore, "put" | "delete">;
  readonly redrive: Redrive;
  readonly countDrained: Conclude["countDrained"];
  readonly concludeDrained: Conclude["concludeDrained"];
  /** `undefined` if the gateway exports no traces. */
  readonly spans?: DeliverySpans | undefined;
  /** Routes the items of an intake's delivery. */
  readonly route: Route;
}

/** A delivery that arrived while its channel was paused. `id` identifies its record in the quarantine, which serves as the buffer. */
export interface BufferedDelivery {
  readonly id: string;
  readonly delivery: QuarantinedItem["delivery"];
}

export type DrainPaused = ReturnType<typeof createDrainPaused>;

export interface DrainOptions {
  readonly signal: AbortSignal;
  /** Called with the record ids of deliveries that are completely processed, before later ones are. */
  readonly onDone?: ((ids: readonly string[]) => Promise<void>) | undefined;
}

interface CleanDelivery {
  readonly buffered: BufferedDelivery;
  readonly received: number;
  readonly ignored: number;
  readonly events: readonly OutgoingEvent[];
  readonly bytes: number;
}

/** Publishes deliveries that arrived during a pause. Invalid items are quarantined, because the sender already has its response. */
export function createDrainPaused(deps: DrainPausedDeps) {
  const { normalize, publish, quarantine, redrive, countDrained, route, spans } = deps;

  /** @throws UnavailableError if the result is uncertain. Calling again is safe. */
  async function one(
    channel: CompiledChannel,
    buffered: BufferedDelivery,
    { signal }: { readonly signal: AbortSignal },
  ): Promise<Outcome> {
    if (channel.routes !== undefined) return routeOne(channel, channel.routes, buffered);
    const request = { ...toSelection(buffered), delivery: buffered.delivery, wasPaused: true };
    const result = await redrive(channel, request, { signal });
    const isAccepted = result.kind === "accepted";
    if (isAccepted && result.outcome.quarantined === 0) return result.outcome;
    const outcome = isAccepted
      ? result.outcome
      : await quarantineAsInvalid(channel, buffered, result, signal);
    // The failed items now have separate quarantine records, so the record of the whole delivery is not needed.
    await quarantine.delete(channel.identity.organizationId, buffered.id);
    return outcome;
  }

  async function routeOne(
    channel: CompiledChannel,
    routes: Routes,
    buffered: BufferedDelivery,
  ): Promise<Outcome> {
    const delivery = spans === undefined ? buffered.delivery : spans.startRedrive(buffered.delivery);
    const result = await route(channel, routes, delivery, NO_LIMITS);
    deps.concludeDrained(channel, delivery, result);
    const outcome =
      result.kind === "routed"
        ? result.outcome
        : await quarantineAsInvalid(channel, buffered, result, NEVER_ABORTED);
    await quarantine.delete(channel.identity.organizationId, buffered.id);
    return outcome;
  }

  async function quarantineAsInvalid(
    { identity }: CompiledChannel,
    { delivery }: BufferedDelivery,
    result: IngestResult,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const failure =
      result.kind === "tooManyItems"
        ? tooManyItemsFailure(result.limit)
        : createDeliveryFailure("invalid_body", result.kind);
    const ids = await quarantine.put(identity, { delivery, items: [{ failure, keep: "all" }] }, { signal });
    return createOutcome({ received: 1, ignored: 0 }, [], [], toQuarantineReceipts([failure], ids));
  }

  async function publishTogether(
    channel: CompiledChannel,
    batch: readonly CleanDelivery[],
    { signal, onDone }: DrainOptions,
  ): Promise<void> {
    if (batch.length === 0) return;
    const ids = batch.map(({ buffered }) => buffered.id);
    const events = batch.flatMap((clean) => clean.events);
    const { receipts } = await publish(
      { channel: channel.identity, events, policy: toPublishPolicy(channel), release: ids },
      { signal },
    );
    if (receipts.some(({ status }) => status === "conflict")) {
      // After a conflict, no record of the batch was deleted, so each delivery is published again separately. Events that were already
      // published count as duplicates.
      for (const { buffered } of batch) await finishOne(channel, buffered, { signal, onDone });
      return;
    }
    await onDone?.(ids);
    const received = sum(batch.map((clean) => clean.received));
    const ignored = sum(batch.map((clean) => clean.ignored));
    const outcome = createOutcome({ received, ignored }, events, receipts, []);
    countDrained(channel, { kind: "accepted", outcome });
  }

  async function finishOne(
    channel: CompiledChannel,
    buffered: BufferedDelivery,
    { signal, onDone }: DrainOptions,
  ): Promise<void> {
    await one(channel, buffered, { signal });
    await onDone?.([buffered.id]);
  }

  return {
    one,
    /**
     * Publishes buffered deliveries in order. Valid deliveries share writes, because the buffer must shrink faster than new deliveries
     * arrive.
     *
     * @throws UnavailableError if a result is uncertain; the deliveries in question stay buffered
     */
    async all(
      channel: CompiledChannel,
      deliveries: readonly BufferedDelivery[],
      options: DrainOptions,
    ): Promise<void> {
      let batch: CleanDelivery[] = [];
      for (const buffered of deliveries) {
        if (channel.routes !== undefined) {
          await finishOne(channel, buffered, options);
          continue;
        }
        const normalized = await normalize(channel.rules, buffered.delivery, toSelection(buffered));
        const clean = toCleanDelivery(buffered, normalized);
        if (clean && fits(batch, clean)) {
          batch.push(clean);
          continue;
        }
        await publishTogether(channel, batch, options);
        batch = clean ? [clean] : [];
        if (!clean) await finishOne(channel, buffered, options);
      }
      await publishTogether(channel, batch, options);
    },
  };
}

const NEVER_ABORTED = new AbortController().signal;
const NO_LIMITS: RouteLimits = { checkVerified: () => undefined, countItems: () => {} };

const toSelection = ({ id }: BufferedDelivery): Selection => ({
  id,
  item: null,
  definitions: [],
  asNewId: false,
});

/** Returns a delivery that can share a write with others. Returns `undefined` if the delivery has failures or may be a replay. */
function toCleanDelivery(buffered: BufferedDelivery, normalized: Normalized): CleanDelivery | undefined {
  if (normalized.kind !== "normalized" || normalized.failures.length > 0) return undefined;
  if (buffered.delivery.boundTo !== undefined) return undefined;
  const { received, ignored, events } = normalized;
  return { buffered, received, ignored, events, bytes: sum(events.map(({ bytes }) => bytes)) };
}

/** Returns whether one atomic Redis script call can hold the batch and this delivery. */
function fits(batch: readonly CleanDelivery[], next: CleanDelivery): boolean {
  const events = sum(batch.map((clean) => clean.events.length)) + next.events.length;
  const bytes = sum(batch.map((clean) => clean.bytes)) + next.bytes;
  return events <= MAX_CALL_EVENTS && bytes <= MAX_CALL_BYTES;
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);
