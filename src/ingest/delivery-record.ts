import type { NewDeliveryRecord } from "../bus/deliveries/delivery-records.ts";
import type {
  DeliveryRecord,
  DeliveryStatus,
  RecordedItem,
  RecordedVerification,
} from "../event/delivery-record.ts";
import type { Outcome } from "../event/outcome.ts";
import type { RawRequest, VerifiedDelivery } from "../event/received.ts";
import { createId } from "../lib/ids.ts";
import { type Redact, redactBytes, redactTexts } from "../lib/secrets/redact.ts";
import { parseTraceparent } from "../lib/traceparent.ts";
import { maskSecretValues } from "../verify/hidden-values.ts";
import type { CompiledChannel } from "./compile-channel.ts";
import type { Explain } from "./explain.ts";

const MAX_RECEIPTS = 100;
const MAX_ITEMS = 20;
const MAX_ITEMS_CHARACTERS = 32 * 1024;
const MAX_REASON_CHARACTERS = 1_000;

export interface SampledDelivery {
  readonly channel: CompiledChannel;
  readonly sampledAtMs: number;
  readonly durationMs: number;
  readonly status: DeliveryStatus;
  readonly httpStatus: number | null;
  readonly reason: string | null;
  readonly verification: RecordedVerification["result"];
  readonly outcome: Outcome;
  /** The delivery to record. `undefined` if only its headers are recorded. */
  readonly delivery: VerifiedDelivery | undefined;
  /** Size of the body that this record keeps in memory, in bytes. */
  readonly bytes: number;
  readonly request: RawRequest | undefined;
  readonly bodyBytes: number | null;
}

/** Builds the record of a sampled delivery. Values that may contain a secret are redacted. */
export async function createRecord(sample: SampledDelivery, explain: Explain): Promise<NewDeliveryRecord> {
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
    traceId: parseTraceparent(delivery?.traceparent)?.traceId ?? request?.traceId ?? null,
    clientAddress: request?.clientAddress ?? null,
    method: shown.method,
    headers: redactTexts(maskSecretValues(shown.headers), redact),
    query: redactTexts(maskSecretValues(shown.query), redact),
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
    items: record.hasBody && delivery ? await explainItems(explain, channel, delivery, redact) : [],
    body: record.hasBody && delivery ? redactBytes(delivery.body, redact) : null,
  };
}

/** Explains a delivery with the definitions that processed it. Returns no items if the explanation is temporarily unavailable. */
async function explainItems(
  explain: Explain,
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

function requireRequest(request: RawRequest | undefined): RawRequest {
  if (request === undefined) throw new Error("a delivery record needs a delivery or a request");
  return request;
}
