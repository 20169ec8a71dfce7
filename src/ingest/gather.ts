import { MAX_CALL_BYTES, MAX_CALL_EVENTS } from "../bus/publish/publish-lanes.ts";
import type { OutgoingEvent } from "../event/event.ts";
import type { FetchedOptions, GatheredWrite, GatherFetched, IngestResult } from "../event/ingest.ts";
import type { VerifiedDelivery } from "../event/received.ts";
import type { Normalized } from "../normalize/normalize.ts";
import type { CompiledChannel } from "./compile-channel.ts";
import { adjustReconciled } from "./reconciled.ts";
import {
  createOutcome,
  findConflicts,
  getPublishedStatus,
  toPublishPolicy,
  toQuarantineItems,
  toQuarantineReceipts,
  type Writer,
  type WriterDeps,
} from "./write.ts";

export interface GatherDeps extends WriterDeps {
  readonly publishNormalized: Writer["publishNormalized"];
}

interface CleanDelivery {
  readonly delivery: VerifiedDelivery;
  readonly received: number;
  readonly ignored: number;
  readonly events: readonly OutgoingEvent[];
}

/**
 * Creates a function that writes events of a stream in batches. Consecutive events share a write and a cursor position if they fit into one
 * Redis script call. An event that failed or needs asynchronous validation is written separately.
 */
export function createGather(deps: GatherDeps): GatherFetched<CompiledChannel> {
  const { normalize, publish, quarantine, concludeFetched, publishNormalized, spans } = deps;

  return (channel, deliveries) => {
    const writes: GatheredWrite[] = [];
    let clean: CleanDelivery[] = [];
    let count = 0;
    let bytes = 0;

    function close(): void {
      if (clean.length === 0) return;
      const gathered = clean;
      const items = gathered.reduce((sum, { received }) => sum + received, 0);
      writes.push({
        count: gathered.length,
        items,
        write: (options) => writeAll(channel, gathered, options),
      });
      clean = [];
      count = 0;
      bytes = 0;
    }

    for (const fetched of deliveries) {
      const delivery = spans === undefined ? fetched : spans.startFetched(fetched);
      const result = normalize(channel.rules, delivery);
      const normalized =
        result instanceof Promise
          ? result.then((settled) => adjustReconciled(delivery, settled))
          : adjustReconciled(delivery, result);
      if (!isClean(normalized)) {
        close();
        // `write` handles this rejection later, or never if an earlier write fails. This handler keeps Node from reporting an unhandled
        // rejection.
        if (normalized instanceof Promise) normalized.catch(() => {});
        writes.push({
          count: 1,
          items: countItems(normalized),
          write: (options) => writeAlone(channel, delivery, normalized, options),
        });
        continue;
      }
      const { events, ignored, received } = normalized;
      const size = sumBytes(events);
      if (count + events.length > MAX_CALL_EVENTS || bytes + size > MAX_CALL_BYTES) close();
      clean.push({ delivery, received, ignored, events });
      count += events.length;
      bytes += size;
    }
    close();
    return writes;
  };

  async function writeAlone(
    channel: CompiledChannel,
    delivery: VerifiedDelivery,
    normalized: Normalized | Promise<Normalized>,
    options: FetchedOptions,
  ): Promise<readonly IngestResult[]> {
    const result = await publishNormalized(channel, delivery, options, await normalized);
    concludeFetched(channel, delivery, result);
    return [result];
  }

  async function writeAll(
    channel: CompiledChannel,
    gathered: readonly CleanDelivery[],
    { signal, position }: FetchedOptions,
  ): Promise<readonly IngestResult[]> {
    const { identity } = channel;
    const options = { signal, sinceMs: performance.now() };
    const events = gathered.flatMap((clean) => clean.events);
    const batch = { channel: identity, events, policy: toPublishPolicy(channel), position };
    const { receipts } = await publish(batch, options);
    let at = 0;
    const settled = gathered.map((clean) => {
      const own = receipts.slice(at, at + clean.events.length);
      at += own.length;
      return { ...clean, receipts: own, conflicts: findConflicts(clean.events, own) };
    });
    const last = settled.findLast(({ conflicts }) => conflicts.length > 0);
    const results: IngestResult[] = [];
    for (const one of settled) {
      const { delivery, received, ignored, conflicts } = one;
      // Only the last quarantine write moves the cursor. After a crash before that write, the events are read again and no conflict is
      // lost.
      const ids =
        conflicts.length === 0
          ? []
          : await quarantine.put(
              identity,
              { delivery, items: toQuarantineItems(channel, conflicts) },
              one === last ? { ...options, position } : options,
            );
      const quarantined = toQuarantineReceipts(conflicts, ids);
      const outcome = createOutcome(
        { received, ignored },
        one.events,
        one.receipts,
        quarantined,
        getPublishedStatus(delivery),
      );
      const result: IngestResult = { kind: "accepted", outcome };
      concludeFetched(channel, delivery, result);
      results.push(result);
    }
    return results;
  }
}

const isClean = (
  normalized: Normalized | Promise<Normalized>,
): normalized is Normalized & { kind: "normalized" } =>
  !(normalized instanceof Promise) && normalized.kind === "normalized" && normalized.failures.length === 0;

/**
 * Returns the number of items, or `undefined` while validation is in progress. A delivery with too many items counts as one, because it is
 * quarantined as a whole.
 */
function countItems(normalized: Normalized | Promise<Normalized>): number | undefined {
  if (normalized instanceof Promise) return undefined;
  return normalized.kind === "normalized" ? normalized.received : 1;
}

function sumBytes(events: readonly OutgoingEvent[]): number {
  let bytes = 0;
  for (const event of events) bytes += event.bytes;
  return bytes;
}
