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
import { FairWaiting } from "./fair-waiting.ts";
import type { CompiledChannel } from "./live-channel.ts";

/** What a delivery was refused by, before anything could come of it. */
export interface Refusal {
  readonly httpStatus: number;
  readonly reason: string;
}

/**
 * Keeps of each channel one delivery a second at most, for people to look at, and prefers one that was not simply published. A
 * delivery that is not kept costs a comparison. What is kept is written in the background, and dropped first wherever there is no room.
 */
export interface DeliveryRecorder extends AsyncDisposable {
  /** @param request absent: it was fetched */
  readonly settled: (
    channel: CompiledChannel,
    delivery: VerifiedDelivery,
    result: IngestResult,
    request?: RawRequest,
  ) => void;
  /** Of these headers and reason alone are kept. `request` is asked for where it is. */
  readonly refused: (
    channel: CompiledChannel,
    arrivedAtMs: number,
    refusal: Refusal,
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
const MAX_WAITING = { things: 256, bytes: 8 * 1024 * 1024 };
/** Of one write. */
const MAX_WRITTEN = 64;
const MAX_WRITTEN_BYTES = 1024 * 1024;
/** A larger body is not kept. */
const MAX_BODY_BYTES = 128 * 1024;
/** None is written later than so: it was deleted by now, or may have been. See `delete` of the records. */
const MAX_WAIT_MS = 5_000;
const MAX_RECEIPTS = 100;
const MAX_ITEMS = 20;
const MAX_ITEMS_CHARACTERS = 32 * 1024;
const MAX_REASON_CHARACTERS = 1_000;

interface Kept {
  readonly channel: CompiledChannel;
  readonly keptAtMs: number;
  readonly durationMs: number;
  readonly status: DeliveryStatus;
  readonly httpStatus: number | null;
  readonly reason: string | null;
  readonly verification: RecordedVerification["result"];
  readonly outcome: Outcome;
  /** Undefined: headers alone are kept, of the request. */
  readonly delivery: VerifiedDelivery | undefined;
  /** Of its body. */
  readonly bytes: number;
  readonly request: RawRequest | undefined;
  readonly bodyBytes: number | null;
}

export function createDeliveryRecorder(deps: DeliveryRecorderDeps): DeliveryRecorder {
  const { records, explain, isOverLimit, metrics, clock, log } = deps;
  const waiting = new FairWaiting<Kept>(MAX_WAITING);

  /** True where this delivery of the channel is the one to be kept. */
  function isNext({ identity, sampling }: CompiledChannel, arrivedAtMs: number, isPoor: boolean): boolean {
    if (sampling === undefined) return false;
    const leftMs = (isPoor ? sampling.nextPoorAtMs : sampling.nextAtMs) - arrivedAtMs;
    // A clock that was set back must not silence a channel.
    if (leftMs > 0 && leftMs <= EVERY_MS) return false;
    sampling.nextAtMs = arrivedAtMs + EVERY_MS;
    if (isPoor) sampling.nextPoorAtMs = arrivedAtMs + EVERY_MS;
    const before = waiting.find(identity);
    return before === undefined || (isPoor && !isPoorly(before.status));
  }

  function keep(kept: Kept): void {
    if (isOverLimit(kept.channel.identity.organizationId)) drop(kept, "overLimit");
    else for (const gone of waiting.put(kept)) drop(gone, "full");
  }

  const drop = ({ channel }: Pick<Kept, "channel">, cause: string): void =>
    metrics.recordsDropped.add(channel.identity.kind, cause);

  /** As many of those that wait as one write takes, in turns by organization; those that wait too long are dropped. */
  function takeNext(): readonly Kept[] {
    const taken: Kept[] = [];
    let bytes = 0;
    for (let kept = waiting.peek(); kept !== undefined; kept = waiting.peek()) {
      if (taken.length === MAX_WRITTEN || bytes + kept.bytes > MAX_WRITTEN_BYTES) break;
      waiting.shift();
      if (!isInTime(kept)) continue;
      bytes += kept.bytes;
      taken.push(kept);
    }
    return taken;
  }

  /** Counts one that is not as dropped. */
  function isInTime(kept: Kept): boolean {
    const isLate = performance.now() - kept.keptAtMs > MAX_WAIT_MS;
    if (isLate) drop(kept, "late");
    return !isLate;
  }

  async function writeNext(): Promise<void> {
    let taken = takeNext();
    if (taken.length === 0) return;
    try {
      const made = new Map<Kept, NewDeliveryRecord>();
      for (const kept of taken) {
        made.set(kept, await recordOf(kept));
        await setImmediate();
      }
      // What many definitions make of many deliveries takes its time.
      taken = taken.filter(isInTime);
      const written = await records.write(taken.flatMap((kept) => made.get(kept) ?? []));
      for (const kept of taken.slice(written)) drop(kept, "noRoom");
    } catch (error) {
      for (const kept of taken) drop(kept, "unavailable");
      throw error;
    }
  }

  async function recordOf(kept: Kept): Promise<NewDeliveryRecord> {
    const { channel, delivery, request, outcome, bodyBytes, durationMs, status, httpStatus, reason } = kept;
    const { identity, sender, verification } = channel;
    const shown = delivery ?? sender.refuse(requireOne(request), "").redacted();
    const redact = sender.hide(shown);
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
        result: kept.verification,
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
      items: record.hasBody && delivery ? await itemsOf(channel, delivery, redact) : [],
      body: record.hasBody && delivery ? redactBytes(delivery.body, redact) : null,
    };
  }

  /** By the definitions by which the delivery was run; none where that cannot be told just now. */
  async function itemsOf(
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
      if (!isNext(channel, delivery.arrivedAtMs, !isPublished)) return;
      const { body } = delivery;
      // What is kept outlives the request: its bytes are no longer in the budget of bodies.
      const copy = body.length <= MAX_BODY_BYTES ? Buffer.from(body) : NO_BYTES;
      const ended = endOf(result);
      if (result.kind === "tooManyItems" && request !== undefined) {
        const verification = verificationOf(channel, delivery, request);
        keep({ ...withoutBody(channel, request, clock() - delivery.arrivedAtMs), ...ended, verification });
        return;
      }
      keep({
        channel,
        keptAtMs: performance.now(),
        durationMs: clock() - delivery.arrivedAtMs,
        ...ended,
        httpStatus: request === undefined ? null : ended.httpStatus,
        verification: verificationOf(channel, delivery, request),
        delivery: { ...delivery, body: copy },
        bytes: copy.length,
        request: request && { ...request, body: NO_BYTES },
        bodyBytes: body.length,
      });
    },
    refused(channel, arrivedAtMs, { httpStatus, reason }, request) {
      if (!isNext(channel, arrivedAtMs, true)) return;
      keep({
        ...withoutBody(channel, request(), clock() - arrivedAtMs),
        status: httpStatus < 500 ? "refused" : "failed",
        httpStatus,
        reason,
        verification: httpStatus === 401 ? "refused" : "unknown",
      });
    },
    answeredHandshake(channel, request, httpStatus) {
      if (!isNext(channel, request.arrivedAtMs, true)) return;
      keep({
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
const NOTHING: Outcome = {
  received: 0,
  published: 0,
  duplicates: 0,
  quarantined: 0,
  events: [],
  quarantine: [],
};

const isPoorly = (status: DeliveryStatus): boolean =>
  status !== "published" && status !== "duplicate" && status !== "empty";

const withoutBody = (channel: CompiledChannel, request: RawRequest, durationMs: number) => ({
  channel,
  durationMs,
  keptAtMs: performance.now(),
  outcome: NOTHING,
  delivery: undefined,
  bytes: 0,
  request: { ...request, body: NO_BYTES },
  bodyBytes: null,
});

function requireOne(request: RawRequest | undefined): RawRequest {
  if (request === undefined) throw new Error("a record is of a delivery or of a request");
  return request;
}

function verificationOf(
  { verification, sender }: CompiledChannel,
  delivery: VerifiedDelivery,
  request: RawRequest | undefined,
): RecordedVerification["result"] {
  if (request === undefined) return "fetched";
  if (sender.isUnproved(delivery)) return "unproved";
  return (verification?.scheme ?? "none") === "none" ? "none" : "verified";
}

function endOf(result: IngestResult): Pick<Kept, "status" | "httpStatus" | "reason" | "outcome"> {
  switch (result.kind) {
    case "accepted":
      return { status: statusOf(result.outcome), httpStatus: 200, reason: null, outcome: result.outcome };
    case "rejected":
      return { status: "refused", httpStatus: 400, reason: reasonOf(result.failures), outcome: NOTHING };
    case "tooManyItems": {
      const reason = `the delivery holds more than ${result.limit} items`;
      return { status: "refused", httpStatus: 413, reason, outcome: NOTHING };
    }
    case "unverified":
      return { status: "refused", httpStatus: 401, reason: result.message, outcome: NOTHING };
    case "handshake":
      return { status: "handshake", httpStatus: result.reply.status, reason: null, outcome: NOTHING };
    default:
      return result satisfies never;
  }
}

function statusOf({ published, duplicates, quarantined }: Outcome): DeliveryStatus {
  if (quarantined > 0) return "quarantined";
  if (published > 0) return "published";
  return duplicates > 0 ? "duplicate" : "empty";
}

const reasonOf = (failures: readonly ItemFailure[]): string =>
  failures
    .slice(0, 5)
    .map(({ reason, detail }) => `${reason}: ${detail}`)
    .join("; ");
