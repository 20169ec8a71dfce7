import { setTimeout as delay } from "node:timers/promises";
import { CLOSING_MS, type PauseState, type Pauses } from "../bus/groups/pauses.ts";
import type { QuarantineStore } from "../bus/quarantine/quarantine.ts";
import type { IngestResult } from "../event/ingest.ts";
import { createDeliveryFailure } from "../event/outcome.ts";
import type { VerifiedDelivery } from "../event/received.ts";
import type { NewId } from "../lib/ids.ts";
import type { CompiledChannel } from "./compile-channel.ts";
import type { DrainPaused } from "./drain-paused.ts";
import { createOutcome, toQuarantineReceipts } from "./write.ts";

const PAUSED_FAILURE = createDeliveryFailure(
  "paused",
  "the channel is paused, or its buffered deliveries are not published yet",
);
const CHECK_EVERY_MS = 20;

export type BufferWhilePaused = ReturnType<typeof createPauseBuffer>;

/**
 * Creates a function that preserves the order of deliveries across a pause: deliveries that arrive after the pause wait until all buffered
 * ones are published (`Pauses.end`).
 *
 * A pause may end while a delivery is being buffered. So its state is read again after each write, and if the pause is over, the delivery
 * is published at once.
 */
export function createPauseBuffer(deps: {
  readonly quarantine: Pick<QuarantineStore, "put">;
  readonly pauses: Pick<Pauses, "state">;
  readonly drainPaused: Pick<DrainPaused, "one">;
  readonly newDeliveryId: NewId;
}) {
  const { quarantine, pauses, drainPaused, newDeliveryId } = deps;
  /** Channels whose pause is over. Entries stay correct, because each change of a channel creates a new object. */
  const over = new WeakSet<CompiledChannel>();
  const closing = new Map<number, Promise<PauseState>>();

  async function stateOf({ identity, state }: CompiledChannel, pause: number): Promise<PauseState> {
    if (state === "paused") return "buffering";
    const ref = { channel: identity, pause };
    const now = await pauses.state(ref);
    if (now !== "closing") return now;
    // All waiting deliveries of a channel share one loop that checks the pause.
    const looking = closing.get(identity.number) ?? waitForEnd(ref);
    closing.set(identity.number, looking);
    return looking.finally(() => closing.delete(identity.number));
  }

  async function waitForEnd(ref: Parameters<Pauses["state"]>[0]): Promise<PauseState> {
    const untilMs = performance.now() + CLOSING_MS;
    let now: PauseState = "closing";
    while (now === "closing" && performance.now() < untilMs) {
      await delay(CHECK_EVERY_MS);
      now = await pauses.state(ref);
    }
    return now;
  }

  /**
   * Buffers a delivery while its channel is paused or still publishes buffered deliveries. Returns `undefined` if the delivery can be
   * processed now.
   *
   * @throws UnavailableError if the quarantine is full or the result of the write is uncertain
   */
  return async (
    channel: CompiledChannel,
    verified: VerifiedDelivery,
    { signal }: { readonly signal: AbortSignal },
  ): Promise<IngestResult | undefined> => {
    const { identity, pause } = channel;
    if (pause === undefined || over.has(channel)) return undefined;
    if ((await stateOf(channel, pause)) === "over") {
      over.add(channel);
      return undefined;
    }
    // A new id keeps identical deliveries without an id apart. A delivery with signed bytes is identified by those bytes.
    const delivery =
      verified.boundTo === undefined
        ? { ...verified, deliveryId: verified.deliveryId ?? newDeliveryId() }
        : verified;
    const write = { delivery, items: [{ failure: PAUSED_FAILURE, keep: "all" as const }] };
    const ids = await quarantine.put(identity, write, { signal });
    if ((await pauses.state({ channel: identity, pause })) === "over") {
      const [id = ""] = ids;
      const outcome = await drainPaused.one(channel, { id, delivery }, { signal });
      return { kind: "accepted", outcome, isCounted: true };
    }
    return {
      kind: "accepted",
      outcome: createOutcome(
        { received: 1, ignored: 0 },
        [],
        [],
        toQuarantineReceipts([PAUSED_FAILURE], ids),
      ),
    };
  };
}
