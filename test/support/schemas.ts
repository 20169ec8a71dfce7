import { startSchemaCompiler } from "../../src/lib/json-schema/compiler.ts";
import { CEILING_MS } from "./until.ts";

let compiler: ReturnType<typeof startSchemaCompiler> | undefined;

/**
 * One for all tests of a process, whose thread is loaded once. It is never closed: it keeps no process alive. Its jobs may take
 * as long as a slow machine needs.
 */
export function sharedSchemas(): ReturnType<typeof startSchemaCompiler> {
  compiler ??= startSchemaCompiler({ maxCompileCpuMs: CEILING_MS, maxCheckCpuMs: CEILING_MS });
  return compiler;
}
