import type { FindKnownIds } from "../bus/publish/known-ids.ts";
import type { Topics } from "../bus/topics/topics.ts";
import type { VerifiedDelivery } from "../event/received.ts";
import type { CompiledChannel } from "./compile-channel.ts";
import type { Normalizer } from "./normalizer.ts";
import { toPublishPolicy } from "./write.ts";

export interface CompareDeps {
  readonly normalize: Normalizer;
  readonly findKnownIds: FindKnownIds;
  readonly topics: Pick<Topics, "firstReceivedMs">;
}

/** Creates a function that compares deliveries with the events that a channel knows. It publishes nothing. */
export function createCompareReconciled({ findKnownIds, normalize, topics }: CompareDeps) {
  return async function compareReconciled(
    channel: CompiledChannel,
    deliveries: readonly VerifiedDelivery[],
    { sinceMs }: { readonly sinceMs: number },
  ): Promise<{ readonly isKnown: boolean; readonly firstReceivedMs: number | undefined }> {
    const { dedupeWindowMs } = toPublishPolicy(channel);
    const normalized = await Promise.all(deliveries.map((one) => normalize(channel.rules, one)));
    const events = normalized.flatMap((one) => (one.kind === "normalized" ? one.events : []));
    const known = await findKnownIds(events, { dedupeWindowMs });
    const isKnown = known.some(({ kind }) => kind !== "new");
    const used = [...new Set(events.map(({ topic }) => topic))];
    return { isKnown, firstReceivedMs: isKnown ? undefined : await topics.firstReceivedMs(used, sinceMs) };
  };
}
