import type { Publish } from "../bus/publish/publish.ts";
import type { QuarantineStore } from "../bus/quarantine/quarantine.ts";
import type { QuarantinedItem } from "../bus/quarantine/quarantine-record.ts";
import type { OutgoingEvent } from "../event/event.ts";
import type { IngestResult } from "../event/ingest.ts";
import type { ItemFailure, Outcome } from "../event/outcome.ts";
import { type NormalizeDeps, type Normalized, normalize, type Selection } from "../normalize/normalize.ts";
import type { Redrive } from "./ingest.ts";
import { type LiveChannel, publishPolicyOf } from "./live-channel.ts";
import { outcomeOf, quarantineReceiptsOf } from "./outcome.ts";

export interface RedriveKeptDeps extends NormalizeDeps {
  readonly publish: Publish;
  readonly quarantine: Pick<QuarantineStore, "put" | "delete">;
  readonly redrive: Redrive;
  readonly observe: (channel: LiveChannel, result: IngestResult) => void;
}

/** A delivery that a pause has kept, by its record. */
export interface KeptDelivery {
  readonly id: string;
  readonly delivery: QuarantinedItem["delivery"];
}

/** Runs kept deliveries; what becomes of them is as if they came now, but that none is refused any more. */
export interface RedriveKept {
  /** @throws UnavailableError when what became of it is not certain; running it again is safe. */
  one(channel: LiveChannel, kept: KeptDelivery, options: { readonly signal: AbortSignal }): Promise<Outcome>;
  /**
   * In their order. Many that make nothing but events are one write, or a channel that gets new deliveries all the time would
   * never come to the end of the old ones.
   *
   * @throws UnavailableError: those that are not certain are still kept.
   */
  all(
    channel: LiveChannel,
    kept: readonly KeptDelivery[],
    options: { readonly signal: AbortSignal },
  ): Promise<void>;
}

/** What fits one script call (publish-lanes.ts): all or nothing. */
const MAX_EVENTS = 500;
const MAX_BYTES = 4 * 1024 * 1024;

interface Clean {
  readonly kept: KeptDelivery;
  readonly received: number;
  readonly events: readonly OutgoingEvent[];
  readonly bytes: number;
}

export function createRedriveKept(deps: RedriveKeptDeps): RedriveKept {
  const { publish, quarantine, redrive, observe } = deps;

  const one: RedriveKept["one"] = async (channel, kept, { signal }) => {
    const { organizationId } = channel.identity;
    const result = await redrive(channel, { ...selectionOf(kept), delivery: kept.delivery }, { signal });
    if (result.kind === "accepted" && result.outcome.quarantined === 0) return result.outcome;
    const outcome =
      result.kind === "accepted" ? result.outcome : await keepAsInvalid(channel, kept, result, signal);
    // What failed has records of its own now.
    await quarantine.delete(organizationId, kept.id);
    return outcome;
  };

  async function keepAsInvalid(
    { identity }: LiveChannel,
    { delivery }: KeptDelivery,
    result: IngestResult,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const detail =
      result.kind === "tooManyItems" ? `the delivery holds more than ${result.limit} items` : result.kind;
    const failure: ItemFailure = { item: null, reason: "invalid_body", detail, definitions: [] };
    const ids = await quarantine.put(identity, { delivery, items: [{ failure, keep: "all" }] }, { signal });
    return outcomeOf(1, [], [], quarantineReceiptsOf([failure], ids));
  }

  async function publishTogether(
    channel: LiveChannel,
    batch: readonly Clean[],
    signal: AbortSignal,
  ): Promise<void> {
    if (batch.length === 0) return;
    const events = batch.flatMap((clean) => clean.events);
    const release = batch.map(({ kept }) => kept.id);
    const { receipts } = await publish(
      { channel: channel.identity, events, policy: publishPolicyOf(channel), release },
      { signal },
    );
    if (receipts.some(({ status }) => status === "conflict")) {
      // None was released. Those that are on their streams by now are found there.
      for (const { kept } of batch) await one(channel, kept, { signal });
      return;
    }
    const received = batch.reduce((sum, clean) => sum + clean.received, 0);
    observe(channel, { kind: "accepted", outcome: outcomeOf(received, events, receipts, []) });
  }

  return {
    one,
    async all(channel, deliveries, { signal }) {
      let batch: Clean[] = [];
      for (const kept of deliveries) {
        const clean = cleanOf(kept, await normalize(channel.rules, kept.delivery, deps, selectionOf(kept)));
        if (clean && fits(batch, clean)) {
          batch.push(clean);
          continue;
        }
        await publishTogether(channel, batch, signal);
        batch = clean ? [clean] : [];
        if (!clean) await one(channel, kept, { signal });
      }
      await publishTogether(channel, batch, signal);
    },
  };
}

const selectionOf = ({ id }: KeptDelivery): Selection => ({
  ...{ id, item: null, definitions: [], asNewId: false },
});

/** Undefined for what makes more than events. */
function cleanOf(kept: KeptDelivery, normalized: Normalized): Clean | undefined {
  if (normalized.kind !== "normalized" || normalized.failures.length > 0) return undefined;
  const { received, events } = normalized;
  return { kept, received, events, bytes: sum(events.map(({ bytes }) => bytes)) };
}

function fits(batch: readonly Clean[], next: Clean): boolean {
  const events = sum(batch.map((clean) => clean.events.length)) + next.events.length;
  return events <= MAX_EVENTS && sum(batch.map(({ bytes }) => bytes)) + next.bytes <= MAX_BYTES;
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);
