/** Highest sequence number of a stream entry id, 2^64 - 1. */
const MAX_SEQUENCE = "18446744073709551615";

/** Matches stream entry ids of the form `<ms>-<sequence>`. Both numbers have at most 20 digits and no leading zeros. */
export const ENTRY_ID = /^(?:0|[1-9]\d{0,19})-(?:0|[1-9]\d{0,19})$/;

/**
 * Returns the highest entry id before the millisecond `ms`, or the start of the stream for 0. A consumer group that starts there
 * gets all entries from `ms` on.
 */
export const idBefore = (ms: number): string => (ms <= 0 ? "0-0" : `${ms - 1}-${MAX_SEQUENCE}`);

/** Returns the greatest possible id before an id. */
export function idPreceding(id: string): string {
  const [ms = "0", sequence = "0"] = id.split("-");
  return sequence === "0" ? idBefore(Number(ms)) : `${ms}-${BigInt(sequence) - 1n}`;
}

/** Returns the milliseconds of a stream entry id. Values above 2^53 are rounded. */
export const parseEntryMs = (id: string): number => Number(id.slice(0, id.indexOf("-")));

/** Compares two stream entry ids for sorting. Returns a negative number if `a` comes before `b`. */
export function compareEntryIds(a: string, b: string): number {
  const [aMs = "", aSequence = ""] = a.split("-");
  const [bMs = "", bSequence = ""] = b.split("-");
  return compareNumbers(aMs, bMs) || compareNumbers(aSequence, bSequence);
}

function compareNumbers(a: string, b: string): number {
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : Number(a > b);
}
