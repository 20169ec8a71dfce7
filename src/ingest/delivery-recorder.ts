import { setImmediate } from "node:timers/promises";
import type { DeliveryRecords, NewDeliveryRecord } from "../bus/deliveries/delivery-records.ts";
import type { DeliveryStatus, RecordedVerification } from "../event/delivery-record.ts";
import type { IngestResult } from "../event/ingest.ts";
import { EMPTY_OUTCOME, type ItemFailure, type Outcome } from "../event/outcome.ts";
import type { RawRequest, VerifiedDelivery } from "../event/received.ts";
import type { Clock } from "../lib/clock.ts";
import { startLoop } from "../lib/loop.ts";
import type { Log } from "../log.ts";
import type { Metrics } from "../metrics.ts";
import type { CompiledChannel } from "./compile-channel.ts";
import { createRecord, type SampledDelivery } from "./delivery-record.ts";
import type { Explain } from "./explain.ts";
import { SampleQueue } from "./sample-queue.ts";

export interface DeliveryRejection {
  readonly httpStatus: number;
  readonly reason: string;
}

/**
 * Records at most one delivery per second and channel, so that operators can inspect it. Deliveries with a problem take precedence over
 * published ones. Records are written in the background and dropped if too many are waiting.
 */
export interface DeliveryRecorder extends AsyncDisposable {
  /** @param request the request as received; `undefined` for a fetched delivery */
  readonly settled: (
    channel: CompiledChannel,
    delivery: VerifiedDelivery,
    result: IngestResult,
    request?: RawRequest,
  ) => void;
  /**
   * Called when a delivery is rejected. Stores only the headers and the reason. `request` is lazy, because most deliveries are not
   * recorded.
   */
  readonly rejected: (
    channel: CompiledChannel,
    arrivedAtMs: number,
    rejection: DeliveryRejection,
    request: () => RawRequest,
  ) => void;
  readonly answeredHandshake: (channel: CompiledChannel, request: RawRequest, httpStatus: number) => void;
  /**
   * Waits for a write that has begun, then writes one batch of queued records.
   *
   * @throws UnavailableError if the write fails; the records of the batch are lost
   */
  readonly flush: () => Promise<void>;
}

export interface DeliveryRecorderDeps {
  readonly records: Pick<DeliveryRecords, "write">;
  /** Explains how the channel's rules apply to a delivery. Only the steps and failures are recorded, not the events. */
  readonly explain: Explain;
  /** Returns whether the organization exceeds its topic storage limit. If so, its deliveries are not recorded. */
  readonly isOverLimit: (organizationId: string) => boolean;
  readonly metrics: Pick<Metrics, "recordsDropped">;
  readonly clock: Clock;
  readonly log: Log;
}

const EVERY_MS = 1_000;
/**
 * Maximum number and total body size of waiting records in this process. At the limit, the organization with the most waiting records
 * loses some.
 */
const MAX_WAITING = { samples: 256, bytes: 8 * 1024 * 1024 };
/** Maximum number of records per write. */
const MAX_WRITTEN = 64;
const MAX_WRITTEN_BYTES = 1024 * 1024;
/** Maximum size of a recorded body. Larger bodies are left out of the record. */
const MAX_BODY_BYTES = 128 * 1024;
/**
 * Maximum time that a record waits to be written. A later write could restore personal data that an operator has deleted in the meantime.
 */
const MAX_WAIT_MS = 5_000;
export function createDeliveryRecorder(deps: DeliveryRecorderDeps): DeliveryRecorder {
  const { records, explain, isOverLimit, metrics, clock, log } = deps;
  const waiting = new SampleQueue<SampledDelivery>(MAX_WAITING);

  function shouldSample(
    { identity, sampling }: CompiledChannel,
    arrivedAtMs: number,
    isFailed: boolean,
  ): boolean {
    if (sampling === undefined) return false;
    const leftMs = (isFailed ? sampling.nextFailedAtMs : sampling.nextAtMs) - arrivedAtMs;
    // A wait longer than the interval means that the clock was set back. Waiting for the old time would stop the recording.
    if (leftMs > 0 && leftMs <= EVERY_MS) return false;
    sampling.nextAtMs = arrivedAtMs + EVERY_MS;
    if (isFailed) sampling.nextFailedAtMs = arrivedAtMs + EVERY_MS;
    const before = waiting.find(identity);
    return before === undefined || (isFailed && !isFailedStatus(before.status));
  }

  function enqueue(sample: SampledDelivery): void {
    if (isOverLimit(sample.channel.identity.organizationId)) drop(sample, "overLimit");
    else for (const evicted of waiting.put(sample)) drop(evicted, "full");
  }

  const drop = ({ channel }: Pick<SampledDelivery, "channel">, cause: string): void =>
    metrics.recordsDropped.add(channel.identity.kind, cause);

  /** Removes and returns one batch, round-robin between organizations. Drops records that have waited too long. */
  function takeNext(): readonly SampledDelivery[] {
    const taken: SampledDelivery[] = [];
    let bytes = 0;
    for (let sample = waiting.peek(); sample !== undefined; sample = waiting.peek()) {
      if (taken.length === MAX_WRITTEN || bytes + sample.bytes > MAX_WRITTEN_BYTES) break;
      waiting.shift();
      if (!isInTime(sample)) continue;
      bytes += sample.bytes;
      taken.push(sample);
    }
    return taken;
  }

  /** Returns whether a record may still be written. Counts a record that has waited too long as dropped. */
  function isInTime(sample: SampledDelivery): boolean {
    const isLate = performance.now() - sample.sampledAtMs > MAX_WAIT_MS;
    if (isLate) drop(sample, "late");
    return !isLate;
  }

  /** The latest write, which the next one waits for. */
  let writing: Promise<void> = Promise.resolve();

  function writeNext(): Promise<void> {
    writing = writing.catch(() => {}).then(writeBatch);
    return writing;
  }

  async function writeBatch(): Promise<void> {
    let taken = takeNext();
    if (taken.length === 0) return;
    try {
      const made = new Map<SampledDelivery, NewDeliveryRecord>();
      for (const sample of taken) {
        made.set(sample, await createRecord(sample, explain));
        await setImmediate();
      }
      // Building the records takes time, so some may be too old now.
      taken = taken.filter(isInTime);
      const written = await records.write(taken.flatMap((sample) => made.get(sample) ?? []));
      for (const sample of taken.slice(written)) drop(sample, "noRoom");
    } catch (error) {
      for (const sample of taken) drop(sample, "unavailable");
      throw error;
    }
  }

  const loop = startLoop({
    everyMs: EVERY_MS,
    waitsFirst: true,
    step: writeNext,
    onFailing: (err) =>
      log.debug(
        { event: "deliveries.not_recorded", err },
        "delivery records cannot be written and are dropped",
      ),
    onRecovered: () => log.debug({ event: "deliveries.recorded" }, "delivery records are written again"),
  });

  return {
    settled(channel, delivery, result, request) {
      const isPublished = result.kind === "accepted" && result.outcome.quarantined === 0;
      // Missed deliveries are rare, so they are recorded like failed ones.
      const isRare = !isPublished || delivery.reconciled !== undefined;
      if (!shouldSample(channel, delivery.arrivedAtMs, isRare)) return;
      const { body } = delivery;
      // The record needs a copy, because the memory of the request's body is freed after the response.
      const copy = body.length <= MAX_BODY_BYTES ? Buffer.from(body) : NO_BYTES;
      const recordedResult = toRecordedResult(result);
      if (result.kind === "tooManyItems" && request !== undefined) {
        const verification = toVerificationResult(channel, delivery, request);
        enqueue({
          ...withoutBody(channel, request, clock() - delivery.arrivedAtMs),
          ...recordedResult,
          verification,
        });
        return;
      }
      enqueue({
        channel,
        sampledAtMs: performance.now(),
        durationMs: clock() - delivery.arrivedAtMs,
        ...recordedResult,
        httpStatus: request === undefined ? null : recordedResult.httpStatus,
        verification: toVerificationResult(channel, delivery, request),
        delivery: { ...delivery, body: copy },
        bytes: copy.length,
        request: request && { ...request, body: NO_BYTES },
        bodyBytes: body.length,
      });
    },
    rejected(channel, arrivedAtMs, { httpStatus, reason }, request) {
      if (!shouldSample(channel, arrivedAtMs, true)) return;
      enqueue({
        ...withoutBody(channel, request(), clock() - arrivedAtMs),
        status: httpStatus < 500 ? "refused" : "failed",
        httpStatus,
        reason,
        verification: httpStatus === 401 ? "refused" : "unknown",
      });
    },
    answeredHandshake(channel, request, httpStatus) {
      if (!shouldSample(channel, request.arrivedAtMs, true)) return;
      enqueue({
        ...withoutBody(channel, request, clock() - request.arrivedAtMs),
        status: "handshake",
        httpStatus,
        reason: null,
        verification: "unknown",
      });
    },
    flush: writeNext,
    async [Symbol.asyncDispose]() {
      await loop[Symbol.asyncDispose]();
      await writeNext().catch(() => {});
    },
  };
}

const NO_BYTES = Buffer.alloc(0);
const isFailedStatus = (status: DeliveryStatus): boolean =>
  !["published", "recovered", "duplicate", "ignored", "empty", "woke"].includes(status);

const withoutBody = (channel: CompiledChannel, request: RawRequest, durationMs: number) => ({
  channel,
  durationMs,
  sampledAtMs: performance.now(),
  outcome: EMPTY_OUTCOME,
  delivery: undefined,
  bytes: 0,
  request: { ...request, body: NO_BYTES },
  bodyBytes: null,
});

function toVerificationResult(
  { verification, sender }: CompiledChannel,
  delivery: VerifiedDelivery,
  request: RawRequest | undefined,
): RecordedVerification["result"] {
  if (request === undefined) return "fetched";
  if (sender.isShadowed(delivery)) return "unproved";
  return (verification?.scheme ?? "none") === "none" ? "none" : "verified";
}

function toRecordedResult(
  result: IngestResult,
): Pick<SampledDelivery, "status" | "httpStatus" | "reason" | "outcome"> {
  switch (result.kind) {
    case "accepted":
      return { status: toStatus(result.outcome), httpStatus: 200, reason: null, outcome: result.outcome };
    case "rejected":
      return {
        status: "refused",
        httpStatus: 400,
        reason: formatReason(result.failures),
        outcome: EMPTY_OUTCOME,
      };
    case "tooManyItems": {
      const reason = `the delivery contains more than ${result.limit} items`;
      return { status: "refused", httpStatus: 413, reason, outcome: EMPTY_OUTCOME };
    }
    case "unverified":
      return { status: "refused", httpStatus: 401, reason: result.message, outcome: EMPTY_OUTCOME };
    case "handshake":
      return { status: "handshake", httpStatus: result.reply.status, reason: null, outcome: EMPTY_OUTCOME };
    default:
      return result satisfies never;
  }
}

function toStatus({ published, duplicates, ignored, quarantined, events, woken }: Outcome): DeliveryStatus {
  if (quarantined > 0) return "quarantined";
  if (published > 0) return events.some(({ status }) => status === "recovered") ? "recovered" : "published";
  if (duplicates > 0) return "duplicate";
  if (ignored > 0) return "ignored";
  return woken === undefined ? "empty" : "woke";
}

const formatReason = (failures: readonly ItemFailure[]): string =>
  failures
    .slice(0, 5)
    .map(({ reason, detail }) => `${reason}: ${detail}`)
    .join("; ");
