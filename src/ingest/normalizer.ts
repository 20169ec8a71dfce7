import type { VerifiedDelivery } from "../event/received.ts";
import { TokenBuckets } from "../limits/token-buckets.ts";
import { isLarge } from "../normalize/body/bodies.ts";
import type { RulePath } from "../normalize/compile.ts";
import { type Explained, explainEach } from "../normalize/explain.ts";
import {
  contentTypeOf,
  type NormalizeDeps,
  type Normalized,
  normalize,
  type Selection,
} from "../normalize/normalize.ts";
import { type Routed, routeItems } from "../normalize/route-items.ts";
import type { RuleSet } from "../normalize/rule-set.ts";

/**
 * Default time in milliseconds after which the sender of a delivery in validation receives 503. Many senders give up after five seconds.
 * When they retry, the schemas are already compiled.
 */
export const MAX_CHECK_MS = 4_000;

/**
 * Normalizes a delivery on this thread or on a worker thread.
 *
 * @throws UnavailableError
 */
export type Normalizer = (
  rules: RuleSet,
  delivery: VerifiedDelivery,
  only?: Selection,
  maxWaitMs?: number,
) => Normalized | Promise<Normalized>;

export type Explainer = (rules: RuleSet, delivery: VerifiedDelivery, only?: Selection) => Promise<Explained>;

/**
 * Routes the items of a delivery on this thread or on a worker thread.
 *
 * @throws UnavailableError
 */
export type ItemRouter = (
  rules: RuleSet,
  paths: readonly RulePath[],
  delivery: VerifiedDelivery,
  maxWaitMs: number,
) => Routed | Promise<Routed>;

/** Minimum size of a body that is processed on the worker thread, in bytes. Sending a smaller body takes as long as processing it here. */
const MIN_SENT_BYTES = 2 * 1024;
/**
 * CPU time above which a delivery counts as costly, in ms. It must exceed a garbage collection (1 to 3 ms), which can happen during any
 * delivery.
 */
const COSTLY_MS = 5;
/**
 * CPU time per second that costly deliveries of an organization may use on this thread, in ms. Further deliveries are processed on the
 * worker thread.
 */
const COSTLY_MS_PER_SECOND = 100;

const CLOCKS = {
  nowMs: (): number => performance.now(),
  cpuMs(): number {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1_000;
  },
};

export interface ThreadShares {
  readonly isUsedUp: (organizationId: string) => boolean;
  /** Runs `work` and charges its CPU time to the organization. The time after the first `await` in `work` is not charged. */
  readonly run: <T>(organizationId: string, work: () => T) => T;
}

/** @param clocks a monotonic clock and the CPU time of this thread, both in ms */
export function createThreadShares({ nowMs, cpuMs } = CLOCKS): ThreadShares {
  /** One token is one millisecond of CPU time. */
  const buckets = new TokenBuckets<string>({ maxDebtMs: 0 });

  function spend(organizationId: string, tookMs: number): void {
    if (tookMs >= COSTLY_MS) buckets.overdraw(organizationId, tookMs, COSTLY_MS_PER_SECOND, nowMs());
  }

  return {
    isUsedUp: (organizationId) => buckets.look(organizationId, COSTLY_MS_PER_SECOND, nowMs()) > 0,
    run(organizationId, work) {
      const beforeMs = cpuMs();
      const done = work();
      spend(organizationId, cpuMs() - beforeMs);
      return done;
    },
  };
}

/**
 * Creates a function that normalizes deliveries. Large deliveries run on a worker thread. If an organization has used up its share of CPU
 * time on this thread, all but its smallest deliveries also run there.
 */
export const createNormalizer =
  (deps: NormalizeDeps, inWorker: Normalizer, shares: ThreadShares): Normalizer =>
  (rules, delivery, only, maxWaitMs) => {
    const { organizationId } = rules.channel;
    if (isLargeDelivery(delivery)) return inWorker(rules, delivery, only, maxWaitMs);
    if (delivery.body.length < MIN_SENT_BYTES) return normalize(rules, delivery, deps, only, maxWaitMs);
    if (shares.isUsedUp(organizationId)) return inWorker(rules, delivery, only, maxWaitMs);
    return shares.run(organizationId, () => normalize(rules, delivery, deps, only, maxWaitMs));
  };

/**
 * Creates a function that explains deliveries. It chooses between this thread and the worker thread in the same way as `createNormalizer`.
 */
export const createExplainer =
  (deps: NormalizeDeps, inWorker: Explainer, shares: ThreadShares): Explainer =>
  (rules, delivery, only) => {
    const { organizationId } = rules.channel;
    if (isLargeDelivery(delivery)) return inWorker(rules, delivery, only);
    if (delivery.body.length < MIN_SENT_BYTES) return explainEach(rules, delivery, deps, only);
    if (shares.isUsedUp(organizationId)) return inWorker(rules, delivery, only);
    return shares.run(organizationId, () => explainEach(rules, delivery, deps, only));
  };

/**
 * Creates a function that routes the items of deliveries. It chooses between this thread and the worker thread in the same way as
 * `createNormalizer`.
 */
export const createItemRouter =
  (inWorker: ItemRouter, shares: ThreadShares): ItemRouter =>
  (rules, paths, delivery, maxWaitMs) => {
    const { organizationId } = rules.channel;
    if (isLargeDelivery(delivery)) return inWorker(rules, paths, delivery, maxWaitMs);
    if (delivery.body.length < MIN_SENT_BYTES) return routeItems(rules, paths, delivery);
    if (shares.isUsedUp(organizationId)) return inWorker(rules, paths, delivery, maxWaitMs);
    return shares.run(organizationId, () => routeItems(rules, paths, delivery));
  };

const isLargeDelivery = (delivery: VerifiedDelivery): boolean =>
  isLarge(delivery.body.length, contentTypeOf(delivery));
