/** Returns milliseconds since 1970. Code that depends on the time takes a clock as a parameter, so that tests can set the time. */
export type Clock = () => number;

/** The time that was formatted last. Many deliveries arrive within the same millisecond, so caching one is enough. */
let last = { ms: 0, text: new Date(0).toISOString() };

/** Formats a time as RFC 3339 in UTC with milliseconds. The API and the bus use no other format. */
export function formatTimestamp(ms: number): string {
  if (ms !== last.ms) last = { ms, text: new Date(ms).toISOString() };
  return last.text;
}
