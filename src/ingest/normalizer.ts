import type { VerifiedDelivery } from "../event/received.ts";
import { createRateBuckets } from "../lib/rate-buckets.ts";
import type { RuleSet } from "../normalize/compile.ts";
import { type Explained, explainEach } from "../normalize/explain.ts";
import { isLarge } from "../normalize/large.ts";
import {
  contentTypeOf,
  type NormalizeDeps,
  type Normalized,
  normalize,
  type Selection,
} from "../normalize/normalize.ts";

/**
 * Normalizes a delivery, on this thread or on a worker thread.
 * @throws UnavailableError
 */
export type Normalizer = (
  rules: RuleSet,
  delivery: VerifiedDelivery,
  only?: Selection,
  maxWaitMs?: number,
) => Normalized | Promise<Normalized>;

/** Explains each item of a delivery, on this thread or on a worker thread. */
export type Explainer = (rules: RuleSet, delivery: VerifiedDelivery, only?: Selection) => Promise<Explained>;

/** Minimum size of a delivery that is sent to a worker thread. Sending a smaller one takes about as long as normalizing it here. */
const MIN_SENT_BYTES = 2 * 1024;
/**
 * CPU time in milliseconds from which a delivery counts as costly. This is hundreds of times the usual. The value is not lower because any
 * delivery may include a garbage collection of 1 to 3 ms.
 */
const COSTLY_MS = 5;
/**
 * CPU time in milliseconds per second that one organization's costly deliveries may use on this thread. CPU time is measured because,
 * unlike elapsed time, it does not grow on a busy machine.
 */
const COSTLY_MS_PER_SECOND = 100;

const CLOCKS = {
  nowMs: (): number => performance.now(),
  cpuMs(): number {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1_000;
  },
};

/** Tracks how much CPU time of this thread each organization uses. */
export interface ThreadShares {
  /** Returns true if the organization's costly deliveries have used up their share of CPU time. */
  readonly isUsedUp: (organizationId: string) => boolean;
  /**
   * Runs `work` on this thread and charges its CPU time to the organization. Only the time until `work` returns is charged, not the time
   * after its first `await`.
   */
  readonly run: <T>(organizationId: string, work: () => T) => T;
}

/**
 * Creates a tracker of CPU time. Both clocks return milliseconds: `nowMs` is monotonic, and `cpuMs` is the CPU time of this thread.
 * @param clocks in milliseconds: a monotonic clock, and the CPU time of this thread
 */
export function createThreadShares({ nowMs, cpuMs } = CLOCKS): ThreadShares {
  /** Rate buckets in which one token is one millisecond of CPU time. */
  const buckets = createRateBuckets<string>();

  function spend(organizationId: string, tookMs: number): void {
    if (tookMs < COSTLY_MS) return;
    const now = nowMs();
    for (let ms = 0; ms < tookMs; ms++)
      if (buckets.take(organizationId, COSTLY_MS_PER_SECOND, now) > 0) return;
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
 * Creates a function that normalizes small deliveries on this thread. It sends deliveries that would block this thread to a worker thread.
 * Those are large deliveries, and all but the smallest ones of an organization that has used up its share.
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
 * Creates a function that explains deliveries. It chooses the thread in the same way as `createNormalizer`, because explaining costs at
 * least as much. The delivery recorder calls it automatically.
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

const isLargeDelivery = (delivery: VerifiedDelivery): boolean =>
  isLarge(delivery.body.length, contentTypeOf(delivery));
