import type { FindKnownIds, KnownId } from "../bus/publish/known-ids.ts";
import { readAttributes } from "../event/cloud-event.ts";
import type { OutgoingEvent } from "../event/event.ts";
import {
  type Exclusion,
  type ExplainedDefinition,
  type ExplainedEvent,
  type ExplainedItem,
  MAX_EXPLAINED_DATA_CHARS,
} from "../event/explained.ts";
import { type ItemFailure, tooManyItemsFailure } from "../event/outcome.ts";
import type { VerifiedDelivery } from "../event/received.ts";
import { structuredEvent } from "../event/typed-event.ts";
import { findNearest } from "../lib/nearest.ts";
import type { Fault } from "../normalize/fault.ts";
import { isUnmatched, type Selection } from "../normalize/normalize.ts";
import type { CompiledChannel } from "./compile-channel.ts";
import type { Explainer } from "./normalizer.ts";
import { toPastWindow } from "./reconciled.ts";

export type Explain = ReturnType<typeof createExplain>;

interface Draft {
  readonly events: OutgoingEvent[];
  readonly failures: ItemFailure[];
  readonly byRule: Map<string, Fault>;
  readonly ignoredBy: Map<string, Exclusion>;
}

/**
 * Creates a function that previews the events of a delivery without publishing or storing anything. The function throws `UnavailableError`
 * if a schema or the known event ids cannot be read.
 */
export function createExplain(deps: {
  readonly explainEach: Explainer;
  /** Returns which event ids are already known. If `undefined`, the preview contains no events, only steps and failures. */
  readonly findKnownIds: FindKnownIds | undefined;
}) {
  /** @param only selects a single item to preview, processed as in a redrive */
  return async (
    channel: CompiledChannel,
    delivery: VerifiedDelivery,
    only?: Selection,
  ): Promise<readonly ExplainedItem[]> => {
    if (channel.wakes?.publishesNothing) return [];
    const result = await deps.explainEach(channel.rules, delivery, only);
    if (result.kind === "tooManyItems") return [toWholeDeliveryItem(tooManyItemsFailure(result.limit))];
    if (result.kind === "normalized") return result.failures.map(toWholeDeliveryItem);

    const drafts = new Map<number | null, Draft>();
    const of = (item: number | null): Draft => {
      const known = drafts.get(item) ?? { events: [], failures: [], byRule: new Map(), ignoredBy: new Map() };
      drafts.set(item, known);
      return known;
    };
    for (const one of result.results) {
      if (one.kind === "event") of(one.event.item).events.push(one.event);
      else if (one.kind === "ignored") {
        const { item, definition, reason } = one;
        of(item).ignoredBy.set(definition, { path: reason.path, detail: reason.message });
      } else {
        const { item, fault, definition } = one;
        const draft = of(item);
        if (isUnmatched(fault) && channel.config.onNoMatch === "ignore") continue;
        draft.failures.push({ ...fault, item, definitions: definition === undefined ? [] : [definition] });
        if (definition !== undefined) draft.byRule.set(definition, fault);
      }
    }
    if (delivery.reconciled?.isPastWindow === true) {
      for (const draft of drafts.values()) draft.failures.push(...toPastWindow(draft.events.splice(0)));
    }
    const { findKnownIds } = deps;
    const events = findKnownIds ? [...drafts.values()].flatMap((draft) => draft.events) : [];
    const { windowSeconds } = channel.config.dedupe;
    const known = await findKnownIds?.(events, { dedupeWindowMs: windowSeconds * 1000 });
    const statuses = new Map(events.map((event, place) => [event, known?.[place]]));
    return [...drafts]
      .sort(([a], [b]) => (a ?? -1) - (b ?? -1))
      .map(([item, draft]) => {
        const definitions = (result.steps.get(item ?? 0) ?? []).map((definition) => ({
          ...definition,
          failure: draft.byRule.get(definition.type) ?? null,
          ignored: draft.ignoredBy.get(definition.type) ?? null,
        }));
        return {
          item,
          events: findKnownIds
            ? draft.events.map((event) => toExplainedEvent(event, statuses.get(event)))
            : [],
          failures: draft.failures,
          definitions,
          closest: findClosest(definitions),
        };
      });
  };
}

function toExplainedEvent(
  { id, type, topic, fields }: OutgoingEvent,
  known: KnownId | undefined,
): ExplainedEvent {
  const data = readAttributes(fields).text ?? null;
  const event = structuredEvent(fields, MAX_EXPLAINED_DATA_CHARS);
  const entryId = known === undefined || known.kind === "new" ? null : known.entryId;
  return { id, type, topic, data, event, status: known?.kind ?? "new", entryId };
}

/** Returns the event definition that nearly matched. Prefers a similar event type, then the first definition whose path finds a value. */
function findClosest(definitions: readonly ExplainedDefinition[]): string | null {
  if (definitions.some(({ matches }) => matches)) return null;
  const types = definitions.map(({ type }) => type);
  for (const value of definitions.flatMap(({ typePath }) => typePath?.values ?? [])) {
    const nearest = findNearest(value, types);
    if (nearest !== undefined) return nearest;
  }
  return definitions.find(({ typePath }) => (typePath?.values.length ?? 0) > 0)?.type ?? null;
}

const toWholeDeliveryItem = (failure: ItemFailure): ExplainedItem => ({
  item: failure.item,
  events: [],
  failures: [failure],
  definitions: [],
  closest: null,
});
