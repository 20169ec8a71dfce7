/** Milliseconds since the Unix epoch. Handed in as an argument wherever time decides something. */
export type Clock = () => number;

/** The last formatted time: many deliveries come within one millisecond. */
let last = { ms: 0, text: new Date(0).toISOString() };

/** RFC 3339 UTC with milliseconds, the one timestamp format of the API and of the bus. */
export function formatTimestamp(ms: number): string {
  if (ms !== last.ms) last = { ms, text: new Date(ms).toISOString() };
  return last.text;
}
