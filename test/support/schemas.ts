import { startSchemaCompiler } from "../../src/lib/json-schema/compiler.ts";
import { CEILING_MS } from "./until.ts";

let compiler: ReturnType<typeof startSchemaCompiler> | undefined;

/**
 * Returns one compiler for all tests of a process, so that its thread loads once. It is never closed, because it does not keep
 * the process alive. Its jobs may use as much CPU time as a slow machine needs.
 */
export function sharedSchemas(): ReturnType<typeof startSchemaCompiler> {
  compiler ??= startSchemaCompiler({ maxCompileCpuMs: CEILING_MS, maxCheckCpuMs: CEILING_MS });
  return compiler;
}
