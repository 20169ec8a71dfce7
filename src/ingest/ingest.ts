import type { Publish } from "../bus/publish.ts";
import type { QuarantineStore } from "../bus/quarantine.ts";
import type { QuarantineItem } from "../bus/quarantine-record.ts";
import type { Ingest, IngestResult } from "../event/ingest.ts";
import type { ItemFailure } from "../event/outcome.ts";
import type { VerifiedDelivery } from "../event/received.ts";
import { type NormalizeDeps, normalize, type Selection } from "../normalize/normalize.ts";
import type { LiveChannel } from "./live-channel.ts";
import { conflictsOf, outcomeOf, quarantineReceiptsOf } from "./outcome.ts";

export interface IngestDeps extends NormalizeDeps {
  readonly publish: Publish;
  readonly quarantine: Pick<QuarantineStore, "put">;
  /** Told of each result, for counters. */
  readonly observe: (channel: LiveChannel, result: IngestResult) => void;
}

/** One quarantined item to be run again; `id` is its record's. */
export interface RedriveRequest extends Selection {
  readonly delivery: VerifiedDelivery;
}

/**
 * Runs a quarantined item through today's definitions. Its record goes with the write that publishes its events; what
 * fails again stays in quarantine.
 *
 * @throws UnavailableError as `Ingest` does.
 */
export type Redrive = (
  channel: LiveChannel,
  request: RedriveRequest,
  options: { readonly signal: AbortSignal },
) => Promise<IngestResult>;

/** The one path of every delivery: verify, normalize, publish together with what is known to fail, then the conflicts. */
export function createIngest(deps: IngestDeps): {
  readonly ingest: Ingest<LiveChannel>;
  readonly redrive: Redrive;
} {
  const { publish, quarantine, observe } = deps;

  async function write(
    channel: LiveChannel,
    delivery: VerifiedDelivery,
    signal: AbortSignal,
    again?: RedriveRequest,
  ): Promise<IngestResult> {
    const pending = normalize(channel.rules, delivery, deps, again);
    const normalized = pending instanceof Promise ? await pending : pending;
    if (normalized.kind === "tooManyItems") return normalized;
    const { received, events, failures } = normalized;
    if (again === undefined) {
      const refused = failures.filter((failure) => dispositionOf(channel, failure) === "reject");
      if (refused.length > 0) return { kind: "rejected", failures: refused };
    }

    const { identity, config } = channel;
    const { receipts, quarantineIds } = await publish(
      {
        channel: identity,
        events,
        policy: {
          dedupeWindowMs: config.dedupe.windowSeconds * 1000,
          onConflict: config.dedupe.onConflict === "duplicate" ? "duplicate" : "report",
          maxEntries: config.retention.maxEntries,
          maxBytes: config.retention.maxBytes,
        },
        ...(failures.length > 0 ? { quarantine: { delivery, items: itemsOf(channel, failures) } } : {}),
        ...(again !== undefined && failures.length === 0 ? { release: [again.id] } : {}),
      },
      { signal },
    );
    const quarantined = quarantineReceiptsOf(failures, quarantineIds);

    const conflicts = conflictsOf(events, receipts);
    if (conflicts.length > 0) {
      const items = itemsOf(channel, conflicts);
      const ids = await quarantine.put(identity, { delivery, items }, { signal });
      quarantined.push(...quarantineReceiptsOf(conflicts, ids));
    }
    return { kind: "accepted", outcome: outcomeOf(received, events, receipts, quarantined) };
  }

  return {
    async ingest(channel, request, { signal }) {
      const verified = channel.verify(request);
      const result: IngestResult = verified.ok
        ? await write(channel, verified.value, signal)
        : { kind: "unverified", message: verified.error.message };
      observe(channel, result);
      return result;
    },
    async redrive(channel, request, { signal }) {
      const result = await write(channel, request.delivery, signal, request);
      observe(channel, result);
      return result;
    },
  };
}

/** What the channel's settings ask for where an item fails. */
function dispositionOf({ config }: LiveChannel, { reason }: ItemFailure): "reject" | QuarantineItem["keep"] {
  if (reason !== "no_match") return config.onInvalid === "reject" ? "reject" : "all";
  switch (config.onNoMatch) {
    case "reject":
      return "reject";
    case "quarantine":
      return "all";
    case "keepLast":
      return "newest";
    default:
      return config.onNoMatch satisfies never;
  }
}

function itemsOf(channel: LiveChannel, failures: readonly ItemFailure[]): readonly QuarantineItem[] {
  return failures.map((failure) => {
    const disposition = dispositionOf(channel, failure);
    // Conflicts, and what fails again when it is re-driven, are kept whatever the channel says: they cannot be refused any more.
    return { failure, keep: disposition === "newest" ? "newest" : "all" };
  });
}
