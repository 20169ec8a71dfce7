import type { QuarantineStore } from "../../bus/quarantine/quarantine.ts";
import type { IngestResult } from "../../event/ingest.ts";
import { createDeliveryFailure, type Outcome, tooManyItemsFailure } from "../../event/outcome.ts";
import type { RawRequest, VerifiedDelivery } from "../../event/received.ts";
import { UnavailableError } from "../../lib/errors.ts";
import type { NewId } from "../../lib/ids.ts";
import type { CompiledChannel } from "../compile-channel.ts";
import type { Conclude } from "../conclude.ts";
import type { DeliverySpans } from "../delivery-spans.ts";
import type { HookLimits } from "../hook-limits.ts";
import { MAX_CHECK_MS, type Normalizer } from "../normalizer.ts";
import type { BufferWhilePaused } from "../pause-buffer.ts";
import type { ReactFirst } from "../react-first.ts";
import { createOutcome, toQuarantineReceipts, type Writer } from "../write.ts";

export interface DeliverGroupDeps {
  readonly quarantine: Pick<QuarantineStore, "put">;
  readonly bufferWhilePaused: BufferWhilePaused;
  readonly reactFirst: ReactFirst;
  readonly normalize: Normalizer;
  readonly publishNormalized: Writer["publishNormalized"];
  readonly concludeRouted: Conclude["concludeRouted"];
  /** `undefined` if the gateway exports no traces. */
  readonly spans?: DeliverySpans | undefined;
  readonly newDeliveryId: NewId;
  readonly maxCheckMs?: number | undefined;
}

export type DeliverGroup = ReturnType<typeof createDeliverGroup>;

/** Thrown before the first write if a delivery could not be validated in time. */
export class LateValidationError extends Error {
  constructor() {
    super("the delivery could not be validated in time");
  }
}

const NEVER_ABORTED = { signal: new AbortController().signal };

/**
 * Creates a function that delivers the items of one route key to the channel of an install. The provider sends the events of all installs in
 * the same requests, so no setting or limit of one install may reject a request. Invalid items are quarantined. Deliveries over a limit are
 * quarantined as `over_limit`.
 *
 * The function throws `UnavailableError` if the result is uncertain. Before the first write, it throws `BudgetError` if the quarantine of the
 * install's organization is full, and `LateValidationError`.
 */
export function createDeliverGroup(deps: DeliverGroupDeps) {
  const { normalize, publishNormalized, quarantine, spans, maxCheckMs = MAX_CHECK_MS } = deps;

  async function publish(channel: CompiledChannel, delivery: VerifiedDelivery): Promise<IngestResult> {
    let normalized: Awaited<ReturnType<Normalizer>>;
    try {
      normalized = await normalize(channel.rules, delivery, undefined, maxCheckMs);
    } catch (error) {
      throw error instanceof UnavailableError ? new LateValidationError() : error;
    }
    const result = await publishNormalized(channel, delivery, NEVER_ABORTED, normalized);
    return result.kind === "tooManyItems"
      ? keep(channel, delivery, tooManyItemsFailure(result.limit))
      : result;
  }

  async function publishUnlessPaused(
    channel: CompiledChannel,
    delivery: VerifiedDelivery,
  ): Promise<IngestResult> {
    if (channel.pause === undefined) return publish(channel, delivery);
    return (
      (await deps.bufferWhilePaused(channel, delivery, NEVER_ABORTED)) ?? (await publish(channel, delivery))
    );
  }

  const keepOverLimit = (channel: CompiledChannel, delivery: VerifiedDelivery, detail: string) =>
    keep(channel, toDistinct(delivery, deps.newDeliveryId), createDeliveryFailure("over_limit", detail));

  async function keep(
    { identity }: CompiledChannel,
    delivery: VerifiedDelivery,
    failure: ReturnType<typeof createDeliveryFailure>,
  ): Promise<IngestResult> {
    const write = { delivery, items: [{ failure, keep: "all" as const }] };
    const ids = await quarantine.put(identity, write, NEVER_ABORTED);
    const outcome = createOutcome({ received: 1, ignored: 0 }, [], [], toQuarantineReceipts([failure], ids));
    return { kind: "accepted", outcome };
  }

  return async (
    installed: CompiledChannel,
    received: VerifiedDelivery,
    items: number,
    limits: Pick<HookLimits, "checkVerified" | "countItems">,
  ): Promise<Outcome> => {
    const channel = toRouted(installed);
    const delivery = spans === undefined ? received : spans.startRouted(received);
    const limited = limits.checkVerified(channel);
    limits.countItems(channel, items);
    const result = await (limited !== undefined
      ? keepOverLimit(channel, delivery, limited.message)
      : channel.wakes === undefined
        ? publishUnlessPaused(channel, delivery)
        : deps.reactFirst(channel, delivery, () => publishUnlessPaused(channel, delivery)));
    if (result.kind !== "accepted") throw new Error(`a routed delivery was ${result.kind}`);
    deps.concludeRouted(channel, delivery, result, toRequest(delivery));
    return result.outcome;
  };
}

/** Gives a delivery without an id a new one, so that the quarantine keeps identical deliveries apart. */
export const toDistinct = (delivery: VerifiedDelivery, newDeliveryId: NewId): VerifiedDelivery =>
  delivery.boundTo === undefined
    ? { ...delivery, deliveryId: delivery.deliveryId ?? newDeliveryId() }
    : delivery;

const routed = new WeakMap<CompiledChannel, CompiledChannel>();

/** Returns a copy of the channel that quarantines invalid items instead of rejecting them. Signals concern the channel's own address only. */
export function toRouted(channel: CompiledChannel): CompiledChannel {
  const known = routed.get(channel);
  if (known !== undefined) return known;
  const { signals: _, ...others } = channel;
  const { config } = channel;
  const onNoMatch = config.onNoMatch === "reject" ? "quarantine" : config.onNoMatch;
  const made = { ...others, config: { ...config, onInvalid: "quarantine", onNoMatch } } as const;
  routed.set(channel, made);
  return made;
}

const toRequest = ({ method, headers, body, arrivedAtMs }: VerifiedDelivery): RawRequest => ({
  method,
  target: "/",
  headers,
  body,
  arrivedAtMs,
});
