import type { Wakes } from "../bus/sources/wakes.ts";
import { channelFacts } from "../event/channel.ts";
import { EMPTY_OUTCOME } from "../event/outcome.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../log.ts";
import type { Metrics } from "../metrics.ts";
import type { ChannelWakes, CompiledChannel } from "./compile-channel.ts";
import type { DeliveryResult } from "./delivery-result.ts";

/**
 * Stores the wakes of a delivery, then publishes the delivery. A 200 response therefore promises both. Workers with the role `sources` poll
 * the channels.
 *
 * @throws UnavailableError if a wake could not be stored. Other wakes of the delivery may be stored, and a retry does no harm.
 */
export type WakeFirst = (
  channel: CompiledChannel,
  wakes: ChannelWakes,
  publish: () => DeliveryResult | Promise<DeliveryResult>,
) => Promise<DeliveryResult>;

export function createWakeFirst(deps: {
  readonly wakes: Pick<Wakes, "store">;
  readonly metrics: Pick<Metrics, "wakes">;
  readonly clock: Clock;
  readonly log: Log;
}): WakeFirst {
  const { metrics, clock, log } = deps;

  async function wake({ identity }: CompiledChannel, uid: string): Promise<void> {
    const { appId, kind } = identity;
    const isNew = await deps.wakes.store({ appId, uid }, clock());
    metrics.wakes.add(kind, isNew ? "stored" : "coalesced");
    if (isNew && log.isLevelEnabled("debug"))
      log.debug({ event: "wake.stored", ...channelFacts(identity), wakes: uid }, "a wake was stored");
  }

  return async (channel, { uids, publishesNothing }, publish) => {
    await Promise.all(uids.map((uid) => wake(channel, uid)));
    const result = publishesNothing ? NOTHING_PUBLISHED : await publish();
    if (result.kind !== "accepted") return result;
    return { kind: "accepted", outcome: { ...result.outcome, woken: uids } };
  };
}

const NOTHING_PUBLISHED: DeliveryResult = { kind: "accepted", outcome: EMPTY_OUTCOME };
