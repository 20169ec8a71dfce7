/** Returns milliseconds since the Unix epoch. Code that depends on the time takes a clock as a parameter. */
export type Clock = () => number;

/** Cache of the last formatted time, because many deliveries arrive within one millisecond. */
let last = { ms: 0, text: new Date(0).toISOString() };

/** Formats a time in RFC 3339, in UTC with milliseconds. The API and the bus use only this format. */
export function formatTimestamp(ms: number): string {
  if (ms !== last.ms) last = { ms, text: new Date(ms).toISOString() };
  return last.text;
}
