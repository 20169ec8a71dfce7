import type { VerifiedDelivery } from "../event/received.ts";
import { bodyFormatOf } from "../normalize/body/bodies.ts";
import type { RuleSet } from "../normalize/compile.ts";
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

/** Reading XML takes 0.7 µs a character at worst: 11 ms. */
const MAX_XML_HERE = 16 * 1024;
/** Queries visit up to a million nodes, and no more than stand in the delivery. */
const MAX_QUERIED_HERE = 128 * 1024;
const MAX_HERE = 1024 * 1024;

/** Normalizes small deliveries on this thread, and elsewhere those that would hold it up. */
export const createNormalizer =
  (deps: NormalizeDeps, elsewhere: Normalizer): Normalizer =>
  (rules, delivery, only, maxWaitMs) =>
    delivery.body.length > MAX_XML_HERE && isLarge(rules, delivery)
      ? elsewhere(rules, delivery, only, maxWaitMs)
      : normalize(rules, delivery, deps, only, maxWaitMs);

function isLarge({ hasQueries }: RuleSet, delivery: VerifiedDelivery): boolean {
  const { length } = delivery.body;
  if (length > (hasQueries ? MAX_QUERIED_HERE : MAX_HERE)) return true;
  return bodyFormatOf(contentTypeOf(delivery))?.kind === "xml";
}
