import type { ChannelIdentity } from "../event/channel.ts";
import { EMPTY_OUTCOME } from "../event/outcome.ts";
import { parseJson } from "../event/parse-json.ts";
import type { VerifiedDelivery } from "../event/received.ts";
import { readPath } from "../lib/json/read-path.ts";
import type { RegistrationSignal, RegistrationSignals } from "../verify/preset-registration.ts";
import type { CompiledChannel } from "./compile-channel.ts";
import type { DeliveryResult } from "./delivery-result.ts";
import type { WakeFirst } from "./wake.ts";

/**
 * Stores the reactions to a delivery, then publishes it: reactions to the signals of a registration, and wakes of polling channels. A 200
 * response therefore promises all of them. A delivery that consists of signals is not published.
 *
 * @throws UnavailableError if a reaction could not be stored
 */
export type ReactFirst = (
  channel: CompiledChannel,
  delivery: VerifiedDelivery,
  publish: () => DeliveryResult | Promise<DeliveryResult>,
) => Promise<DeliveryResult>;

export interface ReactDeps {
  readonly wakeFirst: WakeFirst;
  readonly reactToSignals: (
    channel: ChannelIdentity,
    signals: ReadonlySet<RegistrationSignal>,
  ) => Promise<void>;
}

export const createReactFirst =
  ({ wakeFirst, reactToSignals }: ReactDeps): ReactFirst =>
  async (channel, delivery, publish) => {
    const { identity, signals, wakes } = channel;
    const found = signals === undefined ? [] : readSignals(signals, delivery);
    const known = new Set(found.filter((signal) => signal !== undefined));
    if (known.size > 0) await reactToSignals(identity, known);
    if (found.length > 0 && found.every((signal) => signal !== undefined))
      return { kind: "accepted", outcome: EMPTY_OUTCOME };
    return wakes === undefined ? publish() : wakeFirst(channel, wakes, publish);
  };

/** Returns the signal of each item. `undefined` for an item without one. */
function readSignals(
  { itemsPath, path, values }: RegistrationSignals,
  { body }: VerifiedDelivery,
): readonly (RegistrationSignal | undefined)[] {
  // Most deliveries contain no signal, so parsing them is avoided.
  if (!Object.keys(values).some((value) => body.includes(value))) return [];
  let items: unknown;
  try {
    items = readPath(parseJson(body.toString()), itemsPath);
  } catch {
    return [];
  }
  return Array.isArray(items) ? items.map((item) => values[String(readPath(item, path))]) : [];
}
