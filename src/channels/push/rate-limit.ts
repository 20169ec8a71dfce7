import type { RateLimitState } from "../../bus/limits/rate-limiter.ts";
import type { ChannelHandle, Ingest } from "../../event/ingest.ts";
import type { Incoming } from "../../http/context.ts";
import { rateLimited, rateRefusal } from "../../http/limits.ts";
import { ApiError, type ErrorResponse } from "../../http/problem.ts";
import type { ClientAddress, ClientAddressOf } from "../../lib/addresses/client-address.ts";
import { createRateBuckets } from "../../lib/rate-buckets.ts";

/**
 * How many deliveries come in by the hooks of this process. What a bucket refuses is nowhere: not read, or not
 * parsed; its sender is told when to try again.
 */
export interface HookLimits {
  /**
   * Before anything of it is read or believed: what one sender brings to a channel. It takes nothing from what the channel
   * may take, so that strangers who send there cannot keep out who may; but where nothing of that is left at the moment, nor of what the
   * organization may take, a body is neither read nor decoded nor verified, only to be refused.
   *
   * @returns 429; undefined: it may be read
   */
  readonly arrived: (channel: ChannelHandle, client: ClientAddress) => ErrorResponse | undefined;
  /** Once it is verified: what the channel takes, and its organization. @throws ApiError 429 */
  readonly verified: (channel: ChannelHandle) => void;
  /**
   * Once it is known how many items a delivery holds: the organization's bucket counts each. It may be overdrawn by one delivery, and the
   * next ones are refused until that is paid back.
   */
  readonly counted: (channel: ChannelHandle, items: number) => void;
  readonly clientOf: (incoming: Incoming) => ClientAddress;
}

export interface HookLimitsDeps {
  readonly clientAddressOf: ClientAddressOf;
  /** The limit of a channel and of each sender to it, where the channel sets none. */
  readonly requestsPerSecond: number;
  /** The limit of an organization, in items; undefined: none. */
  readonly requestsPerSecondOf: (organizationId: string) => number | undefined;
  /** True of an organization whose topics hold more than they may. */
  readonly isOverLimit: (organizationId: string) => boolean;
  /** Milliseconds, monotonic. */
  readonly nowMs?: () => number;
}

const FULL = "The topics of this organization hold as much as they may.";
const TOO_MANY = "Too many deliveries; try later.";
const RETRY_LATER = { "Retry-After": "30" };

/** Token buckets in the process: each gateway counts for itself, and no delivery waits for a counter. */
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
    arrived({ identity, limits }, { network }) {
      const rate = limits.requestsPerSecond ?? requestsPerSecond;
      const now = nowMs();
      const ofSenderMs = senders.take(`${identity.number} ${network}`, rate, now);
      if (ofSenderMs > 0) return rateRefusal(stateOf(ofSenderMs, rate), TOO_MANY);
      const ofChannelMs = channels.look(identity.number, rate, now);
      if (ofChannelMs > 0) return rateRefusal(stateOf(ofChannelMs, rate), TOO_MANY);
      const inAll = requestsPerSecondOf(identity.organizationId);
      if (inAll === undefined) return undefined;
      const ofAllMs = organizations.look(identity.organizationId, inAll, now);
      return ofAllMs > 0 ? rateRefusal(stateOf(ofAllMs, inAll), TOO_MANY) : undefined;
    },
    verified({ identity, limits }) {
      if (isOverLimit(identity.organizationId))
        throw new ApiError("rate_limited", FULL, { headers: RETRY_LATER });
      const now = nowMs();
      const rate = limits.requestsPerSecond ?? requestsPerSecond;
      refuse(channels.take(identity.number, rate, now), rate);
      const inAll = requestsPerSecondOf(identity.organizationId);
      if (inAll !== undefined) refuse(organizations.take(identity.organizationId, inAll, now), inAll);
    },
    counted({ identity: { organizationId } }, items) {
      const inAll = requestsPerSecondOf(organizationId);
      // One was taken when it was verified.
      if (inAll !== undefined && items > 1) organizations.overdraw(organizationId, items - 1, inAll, nowMs());
    },
  };
}

/** The same ingest for deliveries that come to an address. */
export const limitedIngest =
  <C extends ChannelHandle>(
    ingest: Ingest<C>,
    { verified, counted }: Pick<HookLimits, "verified" | "counted">,
  ): Ingest<C> =>
  (channel, request, { signal, onItems }) => {
    const both: typeof onItems =
      onItems &&
      ((...told) => {
        counted(...told);
        onItems(...told);
      });
    return ingest(channel, request, { signal, admit: verified, onItems: both ?? counted });
  };

/** @throws ApiError 429 */
function refuse(waitMs: number, limit: number): void {
  if (waitMs > 0) throw rateLimited(stateOf(waitMs, limit), TOO_MANY);
}

const stateOf = (waitMs: number, limit: number): RateLimitState => ({
  limit,
  remaining: 0,
  allowed: false,
  resetSeconds: Math.max(1, Math.ceil(waitMs / 1_000)),
});
