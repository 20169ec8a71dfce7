import type { Publish } from "../bus/publish/publish.ts";
import type { QuarantineStore } from "../bus/quarantine/quarantine.ts";
import type { QuarantinedItem } from "../bus/quarantine/quarantine-record.ts";
import type { OutgoingEvent } from "../event/event.ts";
import type { IngestResult } from "../event/ingest.ts";
import type { ItemFailure, Outcome } from "../event/outcome.ts";
import { type NormalizeDeps, type Normalized, normalize, type Selection } from "../normalize/normalize.ts";
import { type LiveChannel, publishPolicyOf } from "./live-channel.ts";
import { outcomeOf, quarantineReceiptsOf } from "./outcome.ts";
import type { Redrive } from "./write.ts";

export interface DrainPausedDeps extends NormalizeDeps {
  readonly publish: Publish;
  readonly quarantine: Pick<QuarantineStore, "put" | "delete">;
  readonly redrive: Redrive;
  readonly observe: (channel: LiveChannel, result: IngestResult) => void;
}

/** A delivery that a pause has buffered, by its record. */
export interface BufferedDelivery {
  readonly id: string;
  readonly delivery: QuarantinedItem["delivery"];
}

/** Runs buffered deliveries as if they came now, but none is refused any more. */
export interface DrainPaused {
  /** @throws UnavailableError when what became of it is not certain; running it again is safe. */
  one(
    channel: LiveChannel,
    buffered: BufferedDelivery,
    options: { readonly signal: AbortSignal },
  ): Promise<Outcome>;
  /**
   * In their order. Many that make nothing but events are one write, or a channel that gets new deliveries all the time would
   * never come to the end of the old ones.
   *
   * @throws UnavailableError: those that are not certain stay buffered.
   */
  all(
    channel: LiveChannel,
    buffered: readonly BufferedDelivery[],
    options: { readonly signal: AbortSignal },
  ): Promise<void>;
}

/** The bounds of one script call (publish-lanes.ts): all or nothing. */
const MAX_EVENTS = 500;
const MAX_BYTES = 4 * 1024 * 1024;

interface Clean {
  readonly buffered: BufferedDelivery;
  readonly received: number;
  readonly events: readonly OutgoingEvent[];
  readonly bytes: number;
}

export function createDrainPaused(deps: DrainPausedDeps): DrainPaused {
  const { publish, quarantine, redrive, observe } = deps;

  const one: DrainPaused["one"] = async (channel, buffered, { signal }) => {
    const { organizationId } = channel.identity;
    const result = await redrive(
      channel,
      { ...selectionOf(buffered), delivery: buffered.delivery },
      { signal },
    );
    if (result.kind === "accepted" && result.outcome.quarantined === 0) return result.outcome;
    const outcome =
      result.kind === "accepted"
        ? result.outcome
        : await quarantineAsInvalid(channel, buffered, result, signal);
    // Items that failed have records of their own now.
    await quarantine.delete(organizationId, buffered.id);
    return outcome;
  };

  async function quarantineAsInvalid(
    { identity }: LiveChannel,
    { delivery }: BufferedDelivery,
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
    const release = batch.map(({ buffered }) => buffered.id);
    const { receipts } = await publish(
      { channel: channel.identity, events, policy: publishPolicyOf(channel), release },
      { signal },
    );
    if (receipts.some(({ status }) => status === "conflict")) {
      // None was released. Those that are on their streams by now are found there.
      for (const { buffered } of batch) await one(channel, buffered, { signal });
      return;
    }
    const received = batch.reduce((sum, clean) => sum + clean.received, 0);
    observe(channel, { kind: "accepted", outcome: outcomeOf(received, events, receipts, []) });
  }

  return {
    one,
    async all(channel, deliveries, { signal }) {
      let batch: Clean[] = [];
      for (const buffered of deliveries) {
        const clean = cleanOf(
          buffered,
          await normalize(channel.rules, buffered.delivery, deps, selectionOf(buffered)),
        );
        if (clean && fits(batch, clean)) {
          batch.push(clean);
          continue;
        }
        await publishTogether(channel, batch, signal);
        batch = clean ? [clean] : [];
        if (!clean) await one(channel, buffered, { signal });
      }
      await publishTogether(channel, batch, signal);
    },
  };
}

const selectionOf = ({ id }: BufferedDelivery): Selection => ({
  id,
  item: null,
  definitions: [],
  asNewId: false,
});

/** Undefined for what makes more than events. */
function cleanOf(buffered: BufferedDelivery, normalized: Normalized): Clean | undefined {
  if (normalized.kind !== "normalized" || normalized.failures.length > 0) return undefined;
  const { received, events } = normalized;
  return { buffered, received, events, bytes: sum(events.map(({ bytes }) => bytes)) };
}

function fits(batch: readonly Clean[], next: Clean): boolean {
  const events = sum(batch.map((clean) => clean.events.length)) + next.events.length;
  return events <= MAX_EVENTS && sum(batch.map(({ bytes }) => bytes)) + next.bytes <= MAX_BYTES;
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);
