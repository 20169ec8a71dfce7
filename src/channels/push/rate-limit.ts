import type { RateLimitState } from "../../bus/limits/rate-limiter.ts";
import type { ChannelHandle, Ingest } from "../../event/ingest.ts";
import type { Incoming } from "../../http/context.ts";
import { rateLimitError, rateLimitResponse } from "../../http/limits.ts";
import { ApiError, type ErrorResponse } from "../../http/problem.ts";
import type { ClientAddress, ClientAddressOf } from "../../lib/addresses/client-address.ts";
import { createRateBuckets } from "../../lib/rate-buckets.ts";

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
   * @throws ApiError 429
   */
  readonly checkVerified: (channel: ChannelHandle) => void;
  /**
   * Called with the number of items in a delivery, because the organization's limit counts items. A single delivery may take more tokens
   * than the bucket has. Then the next deliveries are rejected until the balance has recovered.
   */
  readonly countItems: (channel: ChannelHandle, items: number) => void;
  readonly clientOf: (incoming: Incoming) => ClientAddress;
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

const FULL = "This organization has reached its topic storage limit.";
const TOO_MANY = "Too many deliveries. Try again later.";
const RETRY_LATER = { "Retry-After": "30" };

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
    clientOf: ({ socket, headers }) => clientAddressOf(socket.remoteAddress, headers["x-forwarded-for"]),
    checkArrival({ identity, limits }, { network }) {
      const rate = limits.requestsPerSecond ?? requestsPerSecond;
      const now = nowMs();
      const senderWaitMs = senders.take(`${identity.number} ${network}`, rate, now);
      if (senderWaitMs > 0) return rateLimitResponse(toRateLimitState(senderWaitMs, rate), TOO_MANY);
      const channelWaitMs = channels.look(identity.number, rate, now);
      if (channelWaitMs > 0) return rateLimitResponse(toRateLimitState(channelWaitMs, rate), TOO_MANY);
      const organizationRate = requestsPerSecondOf(identity.organizationId);
      if (organizationRate === undefined) return undefined;
      const organizationWaitMs = organizations.look(identity.organizationId, organizationRate, now);
      return organizationWaitMs > 0
        ? rateLimitResponse(toRateLimitState(organizationWaitMs, organizationRate), TOO_MANY)
        : undefined;
    },
    checkVerified({ identity, limits }) {
      if (isOverLimit(identity.organizationId))
        throw new ApiError("rate_limited", FULL, { headers: RETRY_LATER });
      const now = nowMs();
      const rate = limits.requestsPerSecond ?? requestsPerSecond;
      throwIfLimited(channels.take(identity.number, rate, now), rate);
      const organizationRate = requestsPerSecondOf(identity.organizationId);
      if (organizationRate !== undefined)
        throwIfLimited(organizations.take(identity.organizationId, organizationRate, now), organizationRate);
    },
    countItems({ identity: { organizationId } }, items) {
      const organizationRate = requestsPerSecondOf(organizationId);
      // `checkVerified` has already taken a token for the first item.
      if (organizationRate !== undefined && items > 1)
        organizations.overdraw(organizationId, items - 1, organizationRate, nowMs());
    },
  };
}

export const limitedIngest =
  <C extends ChannelHandle>(
    ingest: Ingest<C>,
    { checkVerified, countItems }: Pick<HookLimits, "checkVerified" | "countItems">,
  ): Ingest<C> =>
  (channel, request, { signal, onItems }) => {
    const both: typeof onItems =
      onItems &&
      ((...args) => {
        countItems(...args);
        onItems(...args);
      });
    return ingest(channel, request, { signal, admit: checkVerified, onItems: both ?? countItems });
  };

/** @throws ApiError 429 when `waitMs` is positive */
function throwIfLimited(waitMs: number, limit: number): void {
  if (waitMs > 0) throw rateLimitError(toRateLimitState(waitMs, limit), TOO_MANY);
}

const toRateLimitState = (waitMs: number, limit: number): RateLimitState => ({
  limit,
  remaining: 0,
  allowed: false,
  resetSeconds: Math.max(1, Math.ceil(waitMs / 1_000)),
});
