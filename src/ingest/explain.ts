import type { OutgoingEvent } from "../event/event.ts";
import type { ItemFailure } from "../event/outcome.ts";
import type { VerifiedDelivery } from "../event/received.ts";
import { type NormalizeDeps, normalize } from "../normalize/normalize.ts";
import type { LiveChannel } from "./live-channel.ts";

/** An event as it would stand on its topic, but for what makes an id known already. */
export interface ExplainedEvent extends Pick<OutgoingEvent, "id" | "type" | "topic"> {
  /** As text; null where it has none, or is bytes. */
  readonly data: string | null;
}

/** What one item would become; null: the delivery as a whole. */
export interface ExplainedItem {
  readonly item: number | null;
  readonly events: readonly ExplainedEvent[];
  /** What would be kept in quarantine. */
  readonly failures: readonly ItemFailure[];
}

/**
 * Says what a delivery would become by the channel's definitions, in the order of its items. Nothing is published, kept or counted.
 *
 * @throws UnavailableError when a schema cannot be had now.
 */
export type Explain = (channel: LiveChannel, delivery: VerifiedDelivery) => Promise<readonly ExplainedItem[]>;

export function createExplain(deps: NormalizeDeps): Explain {
  return async (channel, delivery) => {
    const normalized = await normalize(channel.rules, delivery, deps);
    if (normalized.kind === "tooManyItems") return [tooMany(normalized.limit)];
    const items = new Map<number | null, { events: ExplainedEvent[]; failures: ItemFailure[] }>();
    const of = (item: number | null) => {
      const known = items.get(item) ?? { events: [], failures: [] };
      items.set(item, known);
      return known;
    };
    for (const event of normalized.events) of(event.item).events.push(explained(event));
    for (const failure of normalized.failures) of(failure.item).failures.push(failure);
    return [...items]
      .sort(([a], [b]) => (a ?? -1) - (b ?? -1))
      .map(([item, { events, failures }]) => ({ item, events, failures }));
  };
}

function explained({ id, type, topic, fields }: OutgoingEvent): ExplainedEvent {
  const names = fields.filter((_, i) => i % 2 === 0);
  return { id, type, topic, data: fields[names.indexOf("data") * 2 + 1] ?? null };
}

const tooMany = (limit: number): ExplainedItem => ({
  item: null,
  events: [],
  failures: [
    {
      ...{ item: null, reason: "invalid_body", definitions: [] },
      detail: `the delivery holds more than ${limit} items`,
    },
  ],
});
