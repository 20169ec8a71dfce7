import type { OutgoingEvent } from "../event/event.ts";
import type { ItemFailure } from "../event/outcome.ts";
import type { VerifiedDelivery } from "../event/received.ts";
import type { Normalized } from "../normalize/normalize.ts";

/**
 * Adjusts the result for a delivery that a poll has built to find missed events. Drops items that match no definition, because the webhook
 * would not have published them either. Items from before the dedupe window become failures, which a person can publish.
 */
export function adjustReconciled(
  { reconciled }: Pick<VerifiedDelivery, "reconciled">,
  normalized: Normalized,
): Normalized {
  if (reconciled === undefined || normalized.kind !== "normalized") return normalized;
  const failures = normalized.failures.filter(({ reason }) => reason !== "no_match");
  if (!reconciled.isPastWindow) return { ...normalized, failures };
  return { ...normalized, events: [], failures: [...failures, ...toPastWindow(normalized.events)] };
}

const toPastWindow = (events: readonly OutgoingEvent[]): ItemFailure[] =>
  [...Map.groupBy(events, ({ item }) => item)].map(([item, ofItem]) => ({
    item,
    reason: "window_passed",
    detail: `the event ${JSON.stringify(ofItem[0]?.id)} is older than the dedupe window, so it may have been published already`,
    definitions: ofItem.map(({ type }) => type),
  }));
