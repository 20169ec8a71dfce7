import { createRequire } from "node:module";

const require = createRequire(import.meta.url);

/**
 * Loads a package when it is needed, because most gateways never use it. The first call takes about 25 ms.
 *
 * @typeParam T the module of the package, such as `typeof CronParser`
 */
export const loadLibrary = <T>(name: "cron-parser" | "fast-xml-parser" | "oauth4webapi"): T =>
  require(name) as T;
