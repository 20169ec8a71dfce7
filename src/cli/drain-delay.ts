import type { Config } from "../config/schema.ts";

/**
 * Time in seconds between the stop signal and closing the HTTP listener. Load balancers that check every two seconds then see two
 * failed checks.
 */
const DRAIN_DELAY_SECONDS = 5;

/** Returns the drain delay in ms. It is 0 by default if the gateway runs in a terminal. */
export const drainDelayMs = ({ drainDelaySeconds }: Pick<Config, "drainDelaySeconds">): number =>
  (drainDelaySeconds ?? (process.stdout.isTTY ? 0 : DRAIN_DELAY_SECONDS)) * 1_000;
