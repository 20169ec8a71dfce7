import type { FindKnownIds } from "../bus/publish/known-ids.ts";
import type { Topics } from "../bus/topics/topics.ts";
import type { VerifiedDelivery } from "../event/received.ts";
import { type CompiledChannel, toPublishPolicy } from "./compile-channel.ts";
import type { Normalizer } from "./normalizer.ts";

export interface CompareDeps {
  readonly normalize: Normalizer;
  readonly findKnownIds: FindKnownIds;
  readonly topics: Pick<Topics, "hasReceived">;
}

/** Creates a function that compares deliveries with the events that a channel knows. It publishes nothing. */
export function createCompareReconciled({ findKnownIds, normalize, topics }: CompareDeps) {
  return async function compareReconciled(
    channel: CompiledChannel,
    deliveries: readonly VerifiedDelivery[],
    { sinceMs }: { readonly sinceMs: number },
  ): Promise<{ readonly isKnown: boolean; readonly hasReceived: boolean }> {
    const { dedupeWindowMs } = toPublishPolicy(channel);
    const normalized = await Promise.all(deliveries.map((one) => normalize(channel.rules, one)));
    const events = normalized.flatMap((one) => (one.kind === "normalized" ? one.events : []));
    const known = await findKnownIds(events, { dedupeWindowMs });
    if (known.some(({ kind }) => kind !== "new")) return { isKnown: true, hasReceived: true };
    const used = [...new Set(events.map(({ topic }) => topic))];
    return { isKnown: false, hasReceived: await topics.hasReceived(used, sinceMs) };
  };
}
