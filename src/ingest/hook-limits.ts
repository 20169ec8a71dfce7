import type { Limits } from "../data/accounts/limits.ts";
import type { ChannelHandle } from "../event/ingest.ts";
import type { ErrorResponse } from "../http/errors.ts";
import type { HookExchange } from "../http/hook-exchange.ts";
import { rateLimitResponse } from "../http/limits.ts";
import type { ClientAddress, ClientAddressOf } from "../lib/addresses/client-address.ts";
import { ownRates, type Rates } from "../limits/shared-rates.ts";

/** Rate limits for webhook deliveries, per machine. A rejected delivery is not stored, and the response tells the sender when to retry. */
export interface HookLimits {
  /**
   * Called before the body is read. Takes a token from the bucket of this sender for this channel. The buckets of the channel and the
   * organization are only checked, so that unverified senders cannot use up the limits of verified ones. If any of them is empty, the body
   * is neither read nor verified.
   *
   * @returns a 429 response, or `undefined` if the request may be read
   */
  readonly checkArrival: (channel: ChannelHandle, client: ClientAddress) => ErrorResponse | undefined;
  /**
   * Called after verification. Takes one token each from the buckets of the channel and the organization.
   *
   * @returns a 429 response, or `undefined` if the delivery may be processed
   */
  readonly checkVerified: (channel: ChannelHandle) => ErrorResponse | undefined;
  /**
   * Counts the items of a delivery against the organization's limit. The balance may become negative, and then later deliveries are
   * rejected until it recovers.
   */
  readonly countItems: (channel: ChannelHandle, items: number) => void;
  /** Returns the address of the client that sent the request, even if it came through a proxy. */
  readonly clientOf: (exchange: Pick<HookExchange, "peerAddress" | "headers">) => ClientAddress;
}

export interface HookLimitsDeps {
  readonly clientAddressOf: ClientAddressOf;
  /** Default limit in requests per second. It applies to each channel, and to each sender of a channel. */
  readonly requestsPerSecond: number;
  /** Returns the organization's limits. Its limit in items per second is `undefined` if there is none. */
  readonly limitsOf: (organizationId: string) => Pick<Limits, "hookRequestsPerSecond">;
  /** Returns whether the organization exceeds its topic storage limit. */
  readonly isOverLimit: (organizationId: string) => boolean;
  /** Rates that all processes of this machine share. */
  readonly rates?: Rates | undefined;
  /** Monotonic clock, in milliseconds. */
  readonly nowMs?: () => number;
}

const STORAGE_FULL: ErrorResponse = {
  code: "rate_limited",
  message: "This organization has reached its topic storage limit.",
  headers: { "Retry-After": "30" },
};
const TOO_MANY = "Too many deliveries. Try again later.";

/** Creates rate limits in memory. A counter in Redis would delay every delivery. */
export function createHookLimits(deps: HookLimitsDeps): HookLimits {
  const { clientAddressOf, requestsPerSecond, limitsOf, isOverLimit, rates = ownRates } = deps;
  const { nowMs = () => performance.now() } = deps;
  const senders = rates.buckets<string>("hook.sender");
  const channels = rates.buckets<number>("hook.channel");
  const organizations = rates.buckets<string>("hook.organization");
  return {
    clientOf: ({ peerAddress, headers }) => clientAddressOf(peerAddress, headers["x-forwarded-for"]),
    checkArrival({ identity, limits }, { network }) {
      const { number, organizationId } = identity;
      const rate = limits.requestsPerSecond ?? requestsPerSecond;
      const organizationRate = limitsOf(organizationId).hookRequestsPerSecond;
      const now = nowMs();
      return (
        rejectIfLimited(senders.take(`${number} ${network}`, rate, now), rate) ??
        rejectIfLimited(channels.look(number, rate, now), rate) ??
        rejectIfLimited(organizations.look(organizationId, organizationRate, now), organizationRate)
      );
    },
    checkVerified({ identity, limits }) {
      const { number, organizationId } = identity;
      if (isOverLimit(organizationId)) return STORAGE_FULL;
      const rate = limits.requestsPerSecond ?? requestsPerSecond;
      const organizationRate = limitsOf(organizationId).hookRequestsPerSecond;
      const now = nowMs();
      return (
        rejectIfLimited(channels.take(number, rate, now), rate) ??
        rejectIfLimited(organizations.take(organizationId, organizationRate, now), organizationRate)
      );
    },
    countItems({ identity: { organizationId } }, items) {
      if (items <= 1) return;
      // The first item was already counted by `checkVerified`.
      organizations.overdraw(
        organizationId,
        items - 1,
        limitsOf(organizationId).hookRequestsPerSecond,
        nowMs(),
      );
    },
  };
}

/** Returns a 429 response if the rate limit requires a wait. */
function rejectIfLimited(waitMs: number, limit = Number.POSITIVE_INFINITY): ErrorResponse | undefined {
  if (waitMs === 0) return undefined;
  const resetSeconds = Math.max(1, Math.ceil(waitMs / 1_000));
  return rateLimitResponse({ limit, remaining: 0, allowed: false, resetSeconds }, TOO_MANY);
}
