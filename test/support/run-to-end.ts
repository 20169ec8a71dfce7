import { runInNewContext } from "node:vm";
import { CEILING_MS } from "./until.ts";

/**
 * Runs a synchronous function with a time limit. Code of quadratic or exponential time fails its test instead of blocking the run.
 * The limit is the general ceiling, so the time is not measured otherwise.
 */
export const runToEnd = <T>(run: () => T): T => runInNewContext("run()", { run }, { timeout: CEILING_MS });
