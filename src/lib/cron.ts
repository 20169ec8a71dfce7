import type * as CronParser from "cron-parser";
import { loadLibrary } from "./load-library.ts";

/**
 * Parses a cron expression and returns the iterator of its times. The parser is loaded at the first call, with a library for time zones.
 *
 * @throws Error on an invalid expression or time zone
 */
export function parseCron(
  expression: string,
  options: CronParser.CronExpressionOptions,
): CronParser.CronExpression {
  const { CronExpressionParser } = loadLibrary<typeof CronParser>("cron-parser");
  return CronExpressionParser.parse(expression, options);
}
