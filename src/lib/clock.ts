/** A clock that returns milliseconds since the Unix epoch. Code that depends on the time takes a clock as a parameter. */
export type Clock = () => number;

/** The most recently formatted time. It is cached because many deliveries arrive within the same millisecond. */
let last = { ms: 0, text: new Date(0).toISOString() };

/** Formats a time as RFC 3339 in UTC with milliseconds, the only time format in the API and on the bus. */
export function formatTimestamp(ms: number): string {
  if (ms !== last.ms) last = { ms, text: new Date(ms).toISOString() };
  return last.text;
}
