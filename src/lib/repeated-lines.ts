const EVERY_MS = 10_000;
/** Maximum number of reasons that are counted separately. Further ones share a count. */
const MAX_REASONS = 100;

/** Notes a failure. `write` logs the line and is called with the number of failures since the last line of this reason. */
export type NoteRepeated = (reason: string, write: (count: number) => void) => void;

/**
 * Limits lines about failures that repeat with each request, for example during an outage. The first line of a reason is written
 * immediately. Later ones are counted, and the latest is written with their number at most once per interval.
 */
export function createRepeatedLines(everyMs = EVERY_MS): NoteRepeated {
  const noted = new Map<string, { count: number; write: (count: number) => void }>();
  return function noteRepeated(given, write) {
    const reason = noted.has(given) || noted.size < MAX_REASONS ? given : "";
    const known = noted.get(reason);
    if (known !== undefined) {
      known.count++;
      known.write = write;
      return;
    }
    const entry = { count: 0, write };
    noted.set(reason, entry);
    write(1);
    const timer = setInterval(() => {
      const { count } = entry;
      entry.count = 0;
      if (count > 0) return entry.write(count);
      clearInterval(timer);
      noted.delete(reason);
    }, everyMs);
    timer.unref();
  };
}
