import { join } from "node:path";

/**
 * Programs that tests start load the same modules again and again: what Node has compiled of them is kept. The workers of a run have
 * begun without it, and keep nothing: to write down at their end all that they have loaded takes longer than it saves.
 */
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, "../../node_modules/.cache/compile");
