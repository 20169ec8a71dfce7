import type { VerifiedDelivery } from "../event/received.ts";
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

/** Normalizes small deliveries on this thread, and elsewhere those that would hold it up. */
export const createNormalizer =
  (deps: NormalizeDeps, elsewhere: Normalizer): Normalizer =>
  (rules, delivery, only, maxWaitMs) =>
    goesElsewhere(rules, delivery)
      ? elsewhere(rules, delivery, only, maxWaitMs)
      : normalize(rules, delivery, deps, only, maxWaitMs);

export const createExplainer =
  (deps: NormalizeDeps, elsewhere: Explainer): Explainer =>
  (rules, delivery, only) =>
    goesElsewhere(rules, delivery)
      ? elsewhere(rules, delivery, only)
      : explainEach(rules, delivery, deps, only);

const goesElsewhere = ({ hasQueries }: RuleSet, delivery: VerifiedDelivery): boolean =>
  isLarge(delivery.body.length, { contentType: contentTypeOf(delivery), hasQueries });
