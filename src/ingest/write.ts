import type { Publish } from "../bus/publish/publish.ts";
import type { QuarantineStore } from "../bus/quarantine/quarantine.ts";
import type { QuarantineItem } from "../bus/quarantine/quarantine-record.ts";
import type { IngestFetched, IngestResult } from "../event/ingest.ts";
import type { ItemFailure } from "../event/outcome.ts";
import type { SourcePosition, VerifiedDelivery } from "../event/received.ts";
import { type NormalizeDeps, normalize, type Selection } from "../normalize/normalize.ts";
import { type LiveChannel, publishPolicyOf } from "./live-channel.ts";
import { conflictsOf, outcomeOf, quarantineReceiptsOf } from "./outcome.ts";

export interface WriterDeps extends NormalizeDeps {
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

/** Moves the cursor of a source without a delivery. Throws as `IngestFetched` does. */
export type MovePosition = (
  channel: LiveChannel,
  options: { readonly signal: AbortSignal; readonly position: SourcePosition },
) => Promise<void>;

/** Puts verified deliveries on the bus. */
export interface Writer {
  /** Its result is the caller's to observe. @throws UnavailableError */
  readonly write: (
    channel: LiveChannel,
    delivery: VerifiedDelivery,
    options: { readonly signal: AbortSignal },
  ) => Promise<IngestResult>;
  readonly ingestFetched: IngestFetched<LiveChannel>;
  readonly movePosition: MovePosition;
  readonly redrive: Redrive;
}

/** Normalizes, publishes together with what is known to fail, then quarantines the conflicts. */
export function createWriter(deps: WriterDeps): Writer {
  const { publish, quarantine, observe } = deps;

  async function write(
    channel: LiveChannel,
    delivery: VerifiedDelivery,
    { signal, again, position }: WriteOptions,
  ): Promise<IngestResult> {
    const pending = normalize(channel.rules, delivery, deps, again);
    const normalized = pending instanceof Promise ? await pending : pending;
    if (normalized.kind === "tooManyItems" && position === undefined) return normalized;
    const { received, events, failures } =
      normalized.kind === "tooManyItems" ? keptWhole(normalized.limit) : normalized;
    if (again === undefined && position === undefined && failures.length > 0) {
      const refused = failures.filter((failure) => dispositionOf(channel, failure) === "reject");
      if (refused.length > 0) return { kind: "rejected", failures: refused };
    }

    const { identity } = channel;
    const options = { signal, sinceMs: performance.now() };
    const { receipts, quarantineIds } = await publish(
      {
        channel: identity,
        events,
        policy: publishPolicyOf(channel),
        ...(failures.length > 0 ? { quarantine: { delivery, items: itemsOf(channel, failures) } } : {}),
        ...(again !== undefined && failures.length === 0 ? { release: [again.id] } : {}),
        ...(position && { position }),
      },
      options,
    );
    const quarantined = quarantineReceiptsOf(failures, quarantineIds);

    const conflicts = conflictsOf(events, receipts);
    if (conflicts.length > 0) {
      const items = itemsOf(channel, conflicts);
      // The position has waited for it: had the gateway died before, nobody would know of the conflict.
      const ids = await quarantine.put(
        identity,
        { delivery, items },
        { ...options, ...(position && { position }) },
      );
      quarantined.push(...quarantineReceiptsOf(conflicts, ids));
    }
    return { kind: "accepted", outcome: outcomeOf(received, events, receipts, quarantined) };
  }

  const redrive: Redrive = async (channel, request, { signal }) => {
    const result = await write(channel, request.delivery, { signal, again: request });
    observe(channel, result);
    return result;
  };
  const ingestFetched: IngestFetched<LiveChannel> = async (channel, delivery, options) => {
    const result = await write(channel, delivery, options);
    observe(channel, result);
    return result;
  };
  const movePosition: MovePosition = async (channel, { signal, position }) => {
    const batch = { channel: channel.identity, events: [], policy: publishPolicyOf(channel), position };
    await publish(batch, { signal });
  };

  return { write, ingestFetched, movePosition, redrive };
}

interface WriteOptions {
  readonly signal: AbortSignal;
  readonly again?: RedriveRequest;
  readonly position?: SourcePosition;
}

/** A fetched delivery with too many items: no sender can be told to send less, and the next delivery must not wait for it. */
const keptWhole = (limit: number) => ({
  received: 1,
  events: [],
  failures: [
    {
      item: null,
      reason: "invalid_body",
      detail: `the delivery holds more than ${limit} items`,
      definitions: [],
    } satisfies ItemFailure,
  ],
});

/** The channel's settings decide where a failed item goes. */
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
