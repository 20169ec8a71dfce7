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

/** `normalize` with its dependencies, on this thread or on another. @throws UnavailableError */
export type Normalizer = (
  rules: RuleSet,
  delivery: VerifiedDelivery,
  only?: Selection,
  maxWaitMs?: number,
) => Normalized | Promise<Normalized>;

/** `explainEach` likewise. */
export type Explainer = (rules: RuleSet, delivery: VerifiedDelivery, only?: Selection) => Promise<Explained>;

/** To send a smaller one takes as long as to normalize it, nearly whatever it holds. */
const MIN_SENT_BYTES = 2 * 1024;
/** Hundreds of times what an ordinary delivery takes. The garbage of all is collected in the time of some, which takes 1 to 3 ms. */
const COSTLY_MS = 5;
/** Of each second, what the costly deliveries of one organization may take of this thread: processor time, which no busy machine lengthens. */
const COSTLY_MS_PER_SECOND = 100;

const CLOCKS = {
  nowMs: (): number => performance.now(),
  cpuMs(): number {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1_000;
  },
};

/** What the deliveries of each organization take of this thread, by whichever way they are read. */
export interface ThreadShares {
  /** True where its costly ones have taken more than their part of the last second. */
  readonly isUsedUp: (organizationId: string) => boolean;
  /** Runs work of one on this thread, and notes what that takes before the first promise. */
  readonly run: <T>(organizationId: string, work: () => T) => T;
}

/** @param clocks in ms: a monotonic one, and the processor time of this thread */
export function createThreadShares({ nowMs, cpuMs } = CLOCKS): ThreadShares {
  /** A token is a millisecond. */
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
 * Normalizes small deliveries on this thread, and inWorker those that would hold it up: large ones, and all but the smallest of an
 * organization whose deliveries have taken more than their part of the last second.
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

/** Explains here and inWorker as `createNormalizer` does: it costs at least as much, and records of deliveries ask for it unasked. */
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
