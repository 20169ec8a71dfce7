import { createLog, type Log, type LogLevel } from "../../src/log.ts";

/** Creates a log, and the list of its lines as objects. */
export function createTestLog(level: LogLevel): {
  readonly log: Log;
  readonly lines: Record<string, unknown>[];
} {
  const lines: Record<string, unknown>[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
  return { log: createLog({ level, destination }), lines };
}
