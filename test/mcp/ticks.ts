import { type GivenChannel, givenChannel } from "../support/channels.ts";
import type { GatewayProcess } from "../support/gateway-process.ts";

export const TICK_SCHEMA = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };

/** Installs an app whose channel `in` publishes numbered events of the type `tick`, which is open to agents. */
export const givenTicks = (
  gateway: Pick<GatewayProcess, "api" | "origin">,
  more: readonly object[] = [],
): Promise<GivenChannel> =>
  givenChannel(gateway, {
    uid: "in",
    events: [{ type: "tick", typePath: "$.type", idPath: "$.n", agents: true, schema: TICK_SCHEMA }, ...more],
  });

/** Returns the name of an event type of the channel, as agents know it. */
export const nameOf = ({ appId }: GivenChannel, type = "tick"): string => `${appId}.in.${type}`;

/** Sends events with the numbers from `from` to `end`, without `end`. */
export async function sendTicks(to: GivenChannel, from: number, end: number): Promise<void> {
  for (let n = from; n < end; n++) await to.send({ type: "tick", n });
}
