import type { VerifiedDelivery } from "../event/received.ts";
import { bodyFormatOf } from "../normalize/body/bodies.ts";
import { MAX_XML_HERE } from "../normalize/body/xml.ts";
import type { RuleSet } from "../normalize/compile.ts";
import { type Explained, explainEach } from "../normalize/explain.ts";
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

/** Queries visit up to a million nodes, and no more than stand in the delivery. */
const MAX_QUERIED_HERE = 128 * 1024;
const MAX_HERE = 1024 * 1024;

/** Normalizes small deliveries on this thread, and elsewhere those that would hold it up. */
export const createNormalizer =
  (deps: NormalizeDeps, elsewhere: Normalizer): Normalizer =>
  (rules, delivery, only, maxWaitMs) =>
    isLarge(rules, delivery)
      ? elsewhere(rules, delivery, only, maxWaitMs)
      : normalize(rules, delivery, deps, only, maxWaitMs);

export const createExplainer =
  (deps: NormalizeDeps, elsewhere: Explainer): Explainer =>
  (rules, delivery, only) =>
    isLarge(rules, delivery) ? elsewhere(rules, delivery, only) : explainEach(rules, delivery, deps, only);

function isLarge({ hasQueries }: RuleSet, delivery: VerifiedDelivery): boolean {
  const { length } = delivery.body;
  if (length <= MAX_XML_HERE) return false;
  if (length > (hasQueries ? MAX_QUERIED_HERE : MAX_HERE)) return true;
  return bodyFormatOf(contentTypeOf(delivery))?.kind === "xml";
}
