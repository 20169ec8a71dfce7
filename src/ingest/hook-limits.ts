import type { RateLimitState } from "../bus/limits/rate-limiter.ts";
import type { ChannelHandle } from "../event/ingest.ts";
import type { ErrorResponse } from "../http/errors.ts";
import type { HookExchange } from "../http/hook-exchange.ts";
import { rateLimitResponse } from "../http/limits.ts";
import type { ClientAddress, ClientAddressOf } from "../lib/addresses/client-address.ts";
import { createRateBuckets } from "../lib/rate-buckets.ts";

/** Rate limits for push deliveries to this process. A rejected delivery is not stored. The response tells the sender when to retry. */
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
   * Called with the number of items in a delivery, because the organization's limit counts items. A single delivery may take more tokens
   * than the bucket has. Then the next deliveries are rejected until the balance has recovered.
   */
  readonly countItems: (channel: ChannelHandle, items: number) => void;
  /** Returns the address of the sender, which may be behind a proxy. */
  readonly clientOf: (exchange: Pick<HookExchange, "peerAddress" | "headers">) => ClientAddress;
}

export interface HookLimitsDeps {
  readonly clientAddressOf: ClientAddressOf;
  /** Default limit in requests per second, for each channel and for each sender to a channel. */
  readonly requestsPerSecond: number;
  /** Returns the organization's limit in items per second. `undefined` means unlimited. */
  readonly requestsPerSecondOf: (organizationId: string) => number | undefined;
  /** Returns whether the topics of an organization exceed their storage limit. */
  readonly isOverLimit: (organizationId: string) => boolean;
  /** Monotonic clock, in milliseconds. */
  readonly nowMs?: () => number;
}

const STORAGE_FULL: ErrorResponse = {
  code: "rate_limited",
  message: "This organization has reached its topic storage limit.",
  headers: { "Retry-After": "30" },
};
const TOO_MANY = "Too many deliveries. Try again later.";

/** Creates rate limits with token buckets in memory. Each process counts for itself, so that no delivery waits for a shared counter. */
export function createHookLimits(deps: HookLimitsDeps): HookLimits {
  const {
    clientAddressOf,
    requestsPerSecond,
    requestsPerSecondOf,
    isOverLimit,
    nowMs = () => performance.now(),
  } = deps;
  const senders = createRateBuckets<string>();
  const channels = createRateBuckets<number>();
  const organizations = createRateBuckets<string>();
  return {
    clientOf: ({ peerAddress, headers }) => clientAddressOf(peerAddress, headers["x-forwarded-for"]),
    checkArrival({ identity, limits }, { network }) {
      const rate = limits.requestsPerSecond ?? requestsPerSecond;
      const now = nowMs();
      const organizationRate = requestsPerSecondOf(identity.organizationId);
      return (
        rejectIfLimited(senders.take(`${identity.number} ${network}`, rate, now), rate) ??
        rejectIfLimited(channels.look(identity.number, rate, now), rate) ??
        (organizationRate === undefined
          ? undefined
          : rejectIfLimited(
              organizations.look(identity.organizationId, organizationRate, now),
              organizationRate,
            ))
      );
    },
    checkVerified({ identity, limits }) {
      if (isOverLimit(identity.organizationId)) return STORAGE_FULL;
      const now = nowMs();
      const rate = limits.requestsPerSecond ?? requestsPerSecond;
      const organizationRate = requestsPerSecondOf(identity.organizationId);
      return (
        rejectIfLimited(channels.take(identity.number, rate, now), rate) ??
        (organizationRate === undefined
          ? undefined
          : rejectIfLimited(
              organizations.take(identity.organizationId, organizationRate, now),
              organizationRate,
            ))
      );
    },
    countItems({ identity: { organizationId } }, items) {
      const organizationRate = requestsPerSecondOf(organizationId);
      // `checkVerified` has already taken a token for the first item.
      if (organizationRate !== undefined && items > 1)
        organizations.overdraw(organizationId, items - 1, organizationRate, nowMs());
    },
  };
}

/** Returns a 429 response if the caller has to wait for its next token. */
const rejectIfLimited = (waitMs: number, limit: number): ErrorResponse | undefined =>
  waitMs > 0 ? rateLimitResponse(toRateLimitState(waitMs, limit), TOO_MANY) : undefined;

const toRateLimitState = (waitMs: number, limit: number): RateLimitState => ({
  limit,
  remaining: 0,
  allowed: false,
  resetSeconds: Math.max(1, Math.ceil(waitMs / 1_000)),
});
