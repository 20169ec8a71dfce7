#!/usr/bin/env node
import { enableCompileCache } from "node:module";
import { join } from "node:path";

// Makes later starts faster. The folder is part of the installation, because other users can write to Node's default folder. Without
// write access, Node.js caches no modules. It caches only modules that are imported after this call.
const cacheFolder = join(import.meta.dirname, "../node_modules/.cache/inlet");
enableCompileCache(cacheFolder);
// Worker threads and supervised processes only use the cache if this variable is set.
// biome-ignore lint/style/noProcessEnv: Node.js reads the variable, not Inlet
process.env.NODE_COMPILE_CACHE ??= cacheFolder;
const { runCommand } = await import("./cli/run.ts");

process.exitCode = await runCommand(process.argv.slice(2));
