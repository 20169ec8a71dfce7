import { join } from "node:path";

/**
 * Caches the compiled code of the programs that tests start, because they all load the same modules. The
 * test workers have started before this setting and cache nothing: writing their code at the end takes
 * longer than it saves.
 */
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, "../../node_modules/.cache/compile");
