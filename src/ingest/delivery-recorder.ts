import { setImmediate } from "node:timers/promises";
import type { DeliveryRecords, NewDeliveryRecord } from "../bus/deliveries/delivery-records.ts";
import type {
  DeliveryRecord,
  DeliveryStatus,
  RecordedItem,
  RecordedVerification,
} from "../event/delivery-record.ts";
import type { IngestResult } from "../event/ingest.ts";
import type { ItemFailure, Outcome } from "../event/outcome.ts";
import type { RawRequest, VerifiedDelivery } from "../event/received.ts";
import type { Clock } from "../lib/clock.ts";
import { createId } from "../lib/ids.ts";
import { startLoop } from "../lib/loop.ts";
import { type Redact, redactBytes, redactTexts } from "../lib/secrets/redact.ts";
import type { Log } from "../log.ts";
import type { Metrics } from "../metrics.ts";
import type { Explain } from "./explain.ts";
import { SampleQueue } from "./sample-queue.ts";
import type { CompiledChannel } from "./compiled-channel.ts";

/** What a delivery was refused by, before anything could come of it. */
export interface DeliveryRejection {
  readonly httpStatus: number;
  readonly reason: string;
}

/**
 * Keeps of each channel one delivery a second at most, for people to look at, and prefers one that was not simply published. A
 * delivery that is not sample costs a comparison. What is sample is written in the background, and dropped first wherever there is no room.
 */
export interface DeliveryRecorder extends AsyncDisposable {
  /** @param request absent: it was fetched */
  readonly settled: (
    channel: CompiledChannel,
    delivery: VerifiedDelivery,
    result: IngestResult,
    request?: RawRequest,
  ) => void;
  /** Of these headers and reason alone are sample. `request` is asked for where it is. */
  readonly rejected: (
    channel: CompiledChannel,
    arrivedAtMs: number,
    refusal: DeliveryRejection,
    request: () => RawRequest,
  ) => void;
  readonly answeredHandshake: (channel: CompiledChannel, request: RawRequest, httpStatus: number) => void;
  /** Writes what one write takes of what waits, now. @throws UnavailableError: it is dropped */
  readonly flush: () => Promise<void>;
}

export interface DeliveryRecorderDeps {
  readonly records: Pick<DeliveryRecords, "write">;
  /** Says what each path yields; of events it need not tell. */
  readonly explain: Explain;
  /** True of an organization whose topics hold more than they may: it keeps no records. */
  readonly isOverLimit: (organizationId: string) => boolean;
  readonly metrics: Pick<Metrics, "recordsDropped">;
  readonly clock: Clock;
  readonly log: Log;
}

const EVERY_MS = 1_000;
/** Of those that wait to be written, of all channels of this gateway. */
const MAX_WAITING = { samples: 256, bytes: 8 * 1024 * 1024 };
/** Of one write. */
const MAX_WRITTEN = 64;
const MAX_WRITTEN_BYTES = 1024 * 1024;
/** A larger body is not sample. */
const MAX_BODY_BYTES = 128 * 1024;
/** None is written later than so: it was deleted by now, or may have been. See `delete` of the records. */
const MAX_WAIT_MS = 5_000;
const MAX_RECEIPTS = 100;
const MAX_ITEMS = 20;
const MAX_ITEMS_CHARACTERS = 32 * 1024;
const MAX_REASON_CHARACTERS = 1_000;

interface SampledDelivery {
  readonly channel: CompiledChannel;
  readonly sampledAtMs: number;
  readonly durationMs: number;
  readonly status: DeliveryStatus;
  readonly httpStatus: number | null;
  readonly reason: string | null;
  readonly verification: RecordedVerification["result"];
  readonly outcome: Outcome;
  /** Undefined: headers alone are sample, of the request. */
  readonly delivery: VerifiedDelivery | undefined;
  /** Of its body. */
  readonly bytes: number;
  readonly request: RawRequest | undefined;
  readonly bodyBytes: number | null;
}

export function createDeliveryRecorder(deps: DeliveryRecorderDeps): DeliveryRecorder {
  const { records, explain, isOverLimit, metrics, clock, log } = deps;
  const waiting = new SampleQueue<SampledDelivery>(MAX_WAITING);

  /** True where this delivery of the channel is the one to be sample. */
  function shouldSample({ identity, sampling }: CompiledChannel, arrivedAtMs: number, isFailed: boolean): boolean {
    if (sampling === undefined) return false;
    const leftMs = (isFailed ? sampling.nextFailedAtMs : sampling.nextAtMs) - arrivedAtMs;
    // A clock that was set back must not silence a channel.
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

  /** As many of those that wait as one write takes, in turns by organization; those that wait too long are dropped. */
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

  /** Counts one that is not as dropped. */
  function isInTime(sample: SampledDelivery): boolean {
    const isLate = performance.now() - sample.sampledAtMs > MAX_WAIT_MS;
    if (isLate) drop(sample, "late");
    return !isLate;
  }

  async function writeNext(): Promise<void> {
    let taken = takeNext();
    if (taken.length === 0) return;
    try {
      const made = new Map<SampledDelivery, NewDeliveryRecord>();
      for (const sample of taken) {
        made.set(sample, await createRecord(sample));
        await setImmediate();
      }
      // What many definitions make of many deliveries takes its time.
      taken = taken.filter(isInTime);
      const written = await records.write(taken.flatMap((sample) => made.get(sample) ?? []));
      for (const sample of taken.slice(written)) drop(sample, "noRoom");
    } catch (error) {
      for (const sample of taken) drop(sample, "unavailable");
      throw error;
    }
  }

  async function createRecord(sample: SampledDelivery): Promise<NewDeliveryRecord> {
    const { channel, delivery, request, outcome, bodyBytes, durationMs, status, httpStatus, reason } = sample;
    const { identity, sender, verification } = channel;
    const shown = delivery ?? sender.reject(requireRequest(request), "").redacted();
    const redact = sender.createRedactor(shown);
    const record: DeliveryRecord = {
      id: createId("del", shown.arrivedAtMs),
      channelNumber: identity.number,
      channelUid: identity.uid,
      appId: identity.appId,
      organizationId: identity.organizationId,
      requestId: request?.requestId ?? null,
      clientAddress: request?.clientAddress ?? null,
      method: shown.method,
      headers: redactTexts(shown.headers, redact),
      query: redactTexts(shown.query, redact),
      receivedAtMs: shown.arrivedAtMs,
      durationMs,
      status,
      httpStatus,
      reason: reason && redact(reason.slice(0, MAX_REASON_CHARACTERS)),
      verification: {
        result: sample.verification,
        scheme: verification?.scheme ?? "none",
        preset: verification?.preset ?? null,
        deliveryId: delivery?.deliveryId ?? null,
      },
      outcome: {
        ...outcome,
        events: outcome.events
          .slice(0, MAX_RECEIPTS)
          .map((receipt) => ({ ...receipt, id: redact(receipt.id) })),
        quarantine: outcome.quarantine.slice(0, MAX_RECEIPTS),
      },
      bodyBytes,
      hasBody: delivery !== undefined && delivery.body.length === bodyBytes,
    };
    return {
      record,
      items: record.hasBody && delivery ? await explainItems(channel, delivery, redact) : [],
      body: record.hasBody && delivery ? redactBytes(delivery.body, redact) : null,
    };
  }

  /** By the definitions by which the delivery was run; none where that cannot be told just now. */
  async function explainItems(
    channel: CompiledChannel,
    delivery: VerifiedDelivery,
    redact: Redact,
  ): Promise<readonly RecordedItem[]> {
    const explained = await explain(channel, delivery).catch(() => []);
    const items = explained
      .slice(0, MAX_ITEMS)
      .map(({ item, failures, definitions, closest }) => ({ item, failures, definitions, closest }));
    const shown: RecordedItem[] = [];
    let characters = 0;
    for (const item of redactTexts(items, redact)) {
      characters += JSON.stringify(item).length;
      if (characters > MAX_ITEMS_CHARACTERS) break;
      shown.push(item);
    }
    return shown;
  }

  const loop = startLoop({
    everyMs: EVERY_MS,
    waitsFirst: true,
    step: writeNext,
    onFailing: (err) =>
      log.debug({ event: "deliveries.not_recorded", err }, "records of deliveries are dropped"),
    onRecovered: () => log.debug({ event: "deliveries.recorded" }, "deliveries are recorded again"),
  });

  return {
    settled(channel, delivery, result, request) {
      const isPublished = result.kind === "accepted" && result.outcome.quarantined === 0;
      if (!shouldSample(channel, delivery.arrivedAtMs, !isPublished)) return;
      const { body } = delivery;
      // What is sample outlives the request: its bytes are no longer in the budget of bodies.
      const copy = body.length <= MAX_BODY_BYTES ? Buffer.from(body) : NO_BYTES;
      const recordedResult = toRecordedResult(result);
      if (result.kind === "tooManyItems" && request !== undefined) {
        const verification = toVerificationResult(channel, delivery, request);
        enqueue({ ...withoutBody(channel, request, clock() - delivery.arrivedAtMs), ...recordedResult, verification });
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
const EMPTY_OUTCOME: Outcome = {
  received: 0,
  published: 0,
  duplicates: 0,
  quarantined: 0,
  events: [],
  quarantine: [],
};

const isFailedStatus = (status: DeliveryStatus): boolean =>
  status !== "published" && status !== "duplicate" && status !== "empty";

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

function requireRequest(request: RawRequest | undefined): RawRequest {
  if (request === undefined) throw new Error("a record is of a delivery or of a request");
  return request;
}

function toVerificationResult(
  { verification, sender }: CompiledChannel,
  delivery: VerifiedDelivery,
  request: RawRequest | undefined,
): RecordedVerification["result"] {
  if (request === undefined) return "fetched";
  if (sender.isShadowed(delivery)) return "unproved";
  return (verification?.scheme ?? "none") === "none" ? "none" : "verified";
}

function toRecordedResult(result: IngestResult): Pick<SampledDelivery, "status" | "httpStatus" | "reason" | "outcome"> {
  switch (result.kind) {
    case "accepted":
      return { status: toStatus(result.outcome), httpStatus: 200, reason: null, outcome: result.outcome };
    case "rejected":
      return { status: "refused", httpStatus: 400, reason: formatReason(result.failures), outcome: EMPTY_OUTCOME };
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

function toStatus({ published, duplicates, quarantined }: Outcome): DeliveryStatus {
  if (quarantined > 0) return "quarantined";
  if (published > 0) return "published";
  return duplicates > 0 ? "duplicate" : "empty";
}

const formatReason = (failures: readonly ItemFailure[]): string =>
  failures
    .slice(0, 5)
    .map(({ reason, detail }) => `${reason}: ${detail}`)
    .join("; ");
