/** Limits of schemas that are written now. A schema that was stored before a limit was introduced stays usable. */
import type { Finding } from "../errors.ts";

export interface SchemaSize {
  readonly textLength: number;
  readonly codeLength: number;
  readonly cost: number;
}

/** Maximum length of a schema that may be stored, in characters. For comparison, a schema for all GitHub events has 340,000. */
export const MAX_STORED_LENGTH = 512 * 1024;
/**
 * Maximum length in characters of the code generated from a stored schema. For comparison, a schema for all GitHub events generates
 * 4 million.
 */
const MAX_STORED_CODE_LENGTH = 8 * 1024 * 1024;
/**
 * Maximum cost of a stored schema: the number of subschemas that apply to the same place in a value. At this cost, validating one place
 * takes 150 ms. Recursive schemas have infinite cost and are exempt.
 */
const MAX_STORED_COST = 1_000_000;

export const TOO_LONG: Finding = { path: "", message: `has more than ${MAX_STORED_LENGTH} characters` };

/**
 * Returns the limits that a schema exceeds. Recursive schemas may have infinite cost, because each validation has its own time
 * limit.
 */
export function findExcess(size: SchemaSize | undefined): readonly Finding[] {
  if (size === undefined) return [];
  const { textLength, codeLength, cost } = size;
  if (textLength > MAX_STORED_LENGTH) return [TOO_LONG];
  if (codeLength > MAX_STORED_CODE_LENGTH)
    return [{ path: "", message: `generates more than ${MAX_STORED_CODE_LENGTH} characters of code` }];
  if (!Number.isFinite(cost) || cost <= MAX_STORED_COST) return [];
  const message = `applies subschemas to one value up to ${cost} times; the maximum is ${MAX_STORED_COST}`;
  return [{ path: "", message }];
}
