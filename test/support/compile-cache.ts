import { join } from "node:path";

/**
 * Stores the code that Node compiles for the programs that tests start, because each loads the same modules.
 * The test workers start before this setting and store no code: writing it out at their end takes longer than it saves.
 */
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, "../../node_modules/.cache/compile");
