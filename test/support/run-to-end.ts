import { runInNewContext } from "node:vm";
import { CEILING_MS } from "./until.ts";

/**
 * Runs a synchronous function to its end. One that would take quadratic or exponential time is broken off at the ceiling and fails
 * its test, instead of holding up the whole run; nothing else is measured.
 */
export const runToEnd = <T>(run: () => T): T => runInNewContext("run()", { run }, { timeout: CEILING_MS });
