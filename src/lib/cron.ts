import { createRequire } from "node:module";
import type * as CronParser from "cron-parser";

const require = createRequire(import.meta.url);

/**
 * Parses a cron expression and returns the iterator of its times. The parser and its time zone library are loaded at the first call,
 * because few gateways poll by cron expressions.
 *
 * @throws Error on an invalid expression or time zone
 */
export function parseCron(
  expression: string,
  options: CronParser.CronExpressionOptions,
): CronParser.CronExpression {
  const { CronExpressionParser } = require("cron-parser") as typeof CronParser;
  return CronExpressionParser.parse(expression, options);
}
