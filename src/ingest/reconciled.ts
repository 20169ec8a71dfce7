import { hash } from "node:crypto";
import type { StoredChannel } from "../data/channels/stored-channels.ts";
import { toCertainSeconds } from "../event/dedupe.ts";
import type { OutgoingEvent } from "../event/event.ts";
import type { ItemFailure } from "../event/outcome.ts";
import type { VerifiedDelivery } from "../event/received.ts";
import type { Normalized } from "../normalize/normalize.ts";
import type { CompiledChannel } from "./compile-channel.ts";

/** Returns a hash of everything in a channel's settings that decides which ids its events get. A channel that is created again has another one. */
export function hashIdRules({ config, definitions, identity }: StoredChannel): string {
  const { decode, forms, itemsPath, pathSyntax, preset } = config;
  const rules = definitions.map(({ type, typePath, idPath }) => [type, typePath, idPath]);
  const text = JSON.stringify([identity.number, rules, preset, decode, forms, itemsPath, pathSyntax]);
  return hash("sha256", text, "base64url").slice(0, 22);
}

/** Creates a function that returns whether a channel may have received an event of a time and forgotten its id. */
export function createIsForgotten(
  { config }: Pick<CompiledChannel, "config">,
  change: StoredChannel["dedupeChange"],
): (atMs: number, nowMs: number) => boolean {
  const certainMs = toCertainSeconds(config.dedupe.windowSeconds) * 1_000;
  const keptMs = toCertainSeconds((change?.keptMs ?? 0) / 1_000) * 1_000;
  return (atMs, nowMs) =>
    nowMs - atMs > certainMs || (change !== undefined && atMs < change.atMs && nowMs - atMs > keptMs);
}

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

/** Converts events that the channel may have received and forgotten to failures, one per item. */
export const toPastWindow = (events: readonly OutgoingEvent[]): ItemFailure[] =>
  [...Map.groupBy(events, ({ item }) => item)].map(([item, ofItem]) => ({
    item,
    reason: "window_passed",
    detail: `the event ${JSON.stringify(ofItem[0]?.id)} is older than the dedupe window, so it may have been published already`,
    definitions: ofItem.map(({ type }) => type),
  }));
