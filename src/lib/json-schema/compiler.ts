import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Finding } from "../errors.ts";
import { canonicalJson } from "../json/canonical-json.ts";
import { err, ok, type Result } from "../result.ts";
import { unlessAborted } from "../wait.ts";
import type { CompiledSchema, JsonSchema, SchemaCompiler } from "./compiled-schema.ts";
import type { GeneratedCode } from "./generate/generate.ts";
import { schemaHere, schemaInWorker } from "./placement.ts";
import { createTurns } from "./turns.ts";
import { createWorkerLane } from "./worker-lane.ts";

export interface SchemaCompilerOptions {
  /** Of all generated code that is kept, in characters. */
  readonly maxCodeLength?: number;
  readonly compileTimeoutMs?: number;
  /** Of one value in the worker. */
  readonly validateTimeoutMs?: number;
}

const MAX_QUEUED_COMPILES = 10_000;
const MAX_QUEUED_VALUES = 1_000;
const MAX_HEAP_MIB = 512;
const DEFAULT_MAX_CODE_LENGTH = 128 * 1024 * 1024;
/** Evaluating GitHub's largest event, 400 kB, took 7 ms and its first use 5 ms; the union of all, 4 MB, 77 ms. */
const MAX_CODE_LENGTH_HERE = 512 * 1024;
/** GitHub's costliest event has 20,865; applying 100,000 subschemas takes some 15 ms. */
const MAX_COST_HERE = 25_000;
/** 5,000 instructions take some 20 ms to build. */
const MAX_PATTERN_SIZE_HERE = 5_000;

const ANYTHING: CompiledSchema = { validate: () => undefined };
const NOTHING: CompiledSchema = {
  validate: () => ({ path: "", message: "is not allowed by the schema false" }),
};

/**
 * Two worker threads, each started when first needed: one generates code from schemas, the other checks values against
 * what is too costly for this thread, so that no value waits behind a compilation.
 */
export function startSchemaCompiler(options: SchemaCompilerOptions = {}): SchemaCompiler {
  const compiling = createWorkerLane({
    timeoutMs: options.compileTimeoutMs ?? 10_000,
    maxQueued: MAX_QUEUED_COMPILES,
    maxHeapMiB: MAX_HEAP_MIB,
  });
  const checking = createWorkerLane({
    timeoutMs: options.validateTimeoutMs ?? 3_000,
    maxQueued: MAX_QUEUED_VALUES,
    maxHeapMiB: MAX_HEAP_MIB,
  });
  const takeTurn = createTurns();
  const cache = new LRUCache<string, CompiledSchema>({
    maxSize: options.maxCodeLength ?? DEFAULT_MAX_CODE_LENGTH,
  });
  const digests = new WeakMap<object, string>();
  const underWay = new Map<string, Promise<Result<CompiledSchema, readonly Finding[]>>>();

  async function compile(schema: JsonSchema): Promise<Result<CompiledSchema, readonly Finding[]>> {
    const warm = peek(schema);
    if (warm) return ok(warm);
    const text = await takeTurn(() => textOf(schema));
    if (text === undefined) return err([{ path: "", message: "is nested too deeply to be compiled" }]);
    const digest = createHash("sha256").update(text).digest("base64url");
    // A boolean is always warm.
    if (typeof schema === "object") digests.set(schema, digest);
    const known = cache.get(digest);
    if (known) return ok(known);
    const shared = underWay.get(digest) ?? compileText(text, digest).finally(() => underWay.delete(digest));
    underWay.set(digest, shared);
    return shared;
  }

  async function compileText(
    text: string,
    digest: string,
  ): Promise<Result<CompiledSchema, readonly Finding[]>> {
    const reply = await compiling.run({ kind: "compile", text });
    if (reply.kind === "exceeded") {
      return err([{ path: "", message: "takes too much time or memory to be compiled" }]);
    }
    if (reply.kind !== "compiled") throw new Error(`the schema worker answered ${reply.kind}`);
    if (!reply.result.ok) return reply.result;
    const generated = reply.result.value;
    const compiled = isCheap(generated)
      ? await takeTurn(() => schemaHere(digest, generated.code, checking))
      : schemaInWorker(digest, generated.code, checking);
    cache.set(digest, compiled, { size: generated.code.length });
    return ok(compiled);
  }

  function peek(schema: JsonSchema): CompiledSchema | undefined {
    if (typeof schema === "boolean") return schema ? ANYTHING : NOTHING;
    const digest = digests.get(schema);
    return digest === undefined ? undefined : cache.get(digest);
  }

  return {
    // The compilation itself goes on: others may wait for it, and the next to ask finds it in the cache.
    compile: (schema, { signal }) => unlessAborted(signal, compile(schema)),
    peek,
    [Symbol.asyncDispose]: async () => {
      await Promise.all([compiling[Symbol.asyncDispose](), checking[Symbol.asyncDispose]()]);
    },
  };
}

const isCheap = ({ code, cost, patternSize }: GeneratedCode): boolean =>
  code.length <= MAX_CODE_LENGTH_HERE && cost <= MAX_COST_HERE && patternSize <= MAX_PATTERN_SIZE_HERE;

function textOf(schema: JsonSchema): string | undefined {
  try {
    return canonicalJson(schema);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}
