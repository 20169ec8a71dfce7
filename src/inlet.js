#!/usr/bin/env node
// Starts `main.ts` with a compile cache. This file is JavaScript, because Node.js would load its TypeScript compiler for a first module
// in TypeScript. The compiler takes 10 MiB of memory and 40 ms. Later modules do not need it, because the cache contains their JavaScript.
import { enableCompileCache } from "node:module";
import { join } from "node:path";

enableCompileCache(join(import.meta.dirname, "../node_modules/.cache/inlet"));
await import("./main.ts");
