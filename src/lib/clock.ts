/** Milliseconds since the Unix epoch. Handed in as an argument wherever time decides something. */
export type Clock = () => number;

/** RFC 3339 UTC with milliseconds, the one timestamp format of the API and of the bus. */
export const formatTimestamp = (ms: number): string => new Date(ms).toISOString();
