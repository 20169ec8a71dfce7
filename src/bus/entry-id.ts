/** The greatest sequence number of an entry id: 64 bits. */
const MAX_SEQUENCE = "18446744073709551615";

/** An id of the form `<ms>-<sequence>`, two numbers of 64 bits without leading zeros. */
export const ENTRY_ID = /^(?:0|[1-9]\d{0,19})-(?:0|[1-9]\d{0,19})$/;

/**
 * The id just before every entry of that millisecond; 0 is the start of the stream. A group begins there: an entry with exactly
 * the id of a group is never delivered to it.
 */
export const idBefore = (ms: number): string => (ms <= 0 ? "0-0" : `${ms - 1}-${MAX_SEQUENCE}`);

/** Milliseconds of an id; beyond 2^53 not exact. */
export const msOfEntry = (id: string): number => Number(id.slice(0, id.indexOf("-")));

/** Below 0 where the first comes before the second in a stream. */
export function compareEntryIds(a: string, b: string): number {
  const [aMs = "", aSequence = ""] = a.split("-");
  const [bMs = "", bSequence = ""] = b.split("-");
  return compareNumbers(aMs, bMs) || compareNumbers(aSequence, bSequence);
}

function compareNumbers(a: string, b: string): number {
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : Number(a > b);
}
