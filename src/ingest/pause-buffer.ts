import { setTimeout as delay } from "node:timers/promises";
import { CLOSING_MS, type PauseState, type Pauses } from "../bus/groups/pauses.ts";
import type { QuarantineStore } from "../bus/quarantine/quarantine.ts";
import type { IngestResult } from "../event/ingest.ts";
import type { VerifiedDelivery } from "../event/received.ts";
import type { NewId } from "../lib/ids.ts";
import type { DrainPaused } from "./drain-paused.ts";
import type { CompiledChannel } from "./compiled-channel.ts";
import { createOutcome, toQuarantineReceipts, createDeliveryFailure } from "./outcome.ts";

const PAUSED_FAILURE = createDeliveryFailure("paused", "the channel is paused, or deliveries of its pause are not all through");
const CHECK_EVERY_MS = 20;

export type BufferWhilePaused = ReturnType<typeof createPauseBuffer>;

/**
 * Deliveries come through in their order: one that comes after a pause stands behind those that the pause has buffered, until
 * none is left (`Pauses.end`). One that is buffered just as the last goes through would stay behind: so the pause is looked at
 * again after each write, and the delivery runs at once if the pause is over by then.
 */
export function createPauseBuffer(deps: {
  readonly quarantine: Pick<QuarantineStore, "put">;
  readonly pauses: Pick<Pauses, "state">;
  readonly drainPaused: Pick<DrainPaused, "one">;
  readonly newDeliveryId: NewId;
}) {
  const { quarantine, pauses, drainPaused, newDeliveryId } = deps;
  /** Channels in force whose pause is known to be over; a change of the channel makes it another object. */
  const over = new WeakSet<CompiledChannel>();
  const closing = new Map<number, Promise<PauseState>>();

  async function stateOf({ identity, state }: CompiledChannel, pause: number): Promise<PauseState> {
    if (state === "paused") return "keeps";
    const ref = { channel: identity, pause };
    const now = await pauses.state(ref);
    if (now !== "closes") return now;
    // One looks for all that wait.
    const looking = closing.get(identity.number) ?? waitForEnd(ref);
    closing.set(identity.number, looking);
    return looking.finally(() => closing.delete(identity.number));
  }

  async function waitForEnd(ref: Parameters<Pauses["state"]>[0]): Promise<PauseState> {
    const untilMs = performance.now() + CLOSING_MS;
    let now: PauseState = "closes";
    while (now === "closes" && performance.now() < untilMs) {
      await delay(CHECK_EVERY_MS);
      now = await pauses.state(ref);
    }
    return now;
  }

  /**
   * Buffers a delivery of a paused channel, or of one whose buffered deliveries are not all through; undefined where they are,
   * and it may pass.
   *
   * @throws UnavailableError when the quarantine is full, or what became of it is not certain.
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
    // Under a name of its own: two deliveries that are alike are two, and without ids of their own both publish.
    // Signed bytes that are bound name a delivery that has no id.
    const delivery =
      verified.boundTo === undefined
        ? { ...verified, deliveryId: verified.deliveryId ?? newDeliveryId() }
        : verified;
    const write = { delivery, items: [{ failure: PAUSED_FAILURE, keep: "all" as const }] };
    const ids = await quarantine.put(identity, write, { signal });
    if ((await pauses.state({ channel: identity, pause })) === "over") {
      const [id = ""] = ids;
      return { kind: "accepted", outcome: await drainPaused.one(channel, { id, delivery }, { signal }) };
    }
    return { kind: "accepted", outcome: createOutcome(1, [], [], toQuarantineReceipts([PAUSED_FAILURE], ids)) };
  };
}
