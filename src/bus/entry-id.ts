/** Maximum sequence number of an entry id (64 bits). */
const MAX_SEQUENCE = "18446744073709551615";

/** Matches entry ids `<ms>-<sequence>`: two numbers of at most 20 digits without leading zeros. */
export const ENTRY_ID = /^(?:0|[1-9]\d{0,19})-(?:0|[1-9]\d{0,19})$/;

/**
 * Returns the highest possible entry id before the millisecond `ms`, or the start of the stream for 0. Used as the start id of consumer
 * groups, because Redis delivers only entries after that id.
 */
export const idBefore = (ms: number): string => (ms <= 0 ? "0-0" : `${ms - 1}-${MAX_SEQUENCE}`);

/** Returns the milliseconds of an entry id. Not exact above 2^53. */
export const parseEntryMs = (id: string): number => Number(id.slice(0, id.indexOf("-")));

/** Compares two entry ids for `Array.prototype.sort`. Returns a number below 0 if `a` precedes `b` in a stream. */
export function compareEntryIds(a: string, b: string): number {
  const [aMs = "", aSequence = ""] = a.split("-");
  const [bMs = "", bSequence = ""] = b.split("-");
  return compareNumbers(aMs, bMs) || compareNumbers(aSequence, bSequence);
}

function compareNumbers(a: string, b: string): number {
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : Number(a > b);
}
