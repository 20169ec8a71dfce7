/** Returns the current time in ms since 1970. Functions take a clock as a parameter, so that tests can control the time. */
export type Clock = () => number;

/** The most recently formatted time. Many requests arrive within the same millisecond, so caching one time is enough. */
let last = { ms: 0, text: new Date(0).toISOString() };

/** Formats a time as RFC 3339 in UTC with milliseconds, the only time format of the API and of published events. */
export function formatTimestamp(ms: number): string {
  if (ms !== last.ms) last = { ms, text: new Date(ms).toISOString() };
  return last.text;
}
