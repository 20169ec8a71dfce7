import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Finding } from "../errors.ts";
import { canonicalJson } from "../json/canonical-json.ts";
import { err, ok, type Result } from "../result.ts";
import { createTurns } from "../turns.ts";
import { unlessAborted } from "../wait.ts";
import { createWorkerQueue, type Exceeded, type JobOptions, type WorkerQueue } from "../worker-queue.ts";
import type { CompileQuota } from "./compile-quota.ts";
import type { CompiledSchema, JsonSchema, SchemaCompiler, SchemaViolation } from "./compiled-schema.ts";
import { evaluateCode, PatternBudgetError, validatorOf } from "./evaluate.ts";
import type { GeneratedCode } from "./generate/generate.ts";
import { findExcess, MAX_STORED_LENGTH, type SchemaSize, TOO_LONG } from "./stored-limits.ts";
import type { CheckedValue, SchemaAnswer, SchemaRequest } from "./worker.ts";

export interface SchemaCompilerOptions {
  /** Maximum total length in characters of the generated code in the memory cache. */
  readonly maxCodeLength?: number;
  readonly maxCompileCpuMs?: number;
  /** Maximum CPU time in ms for validating one value in a worker thread. */
  readonly maxCheckCpuMs?: number;
  /** CPU time quota per lane. Unlimited if omitted. */
  readonly quota?: CompileQuota;
  /** Called for each schema that was missing from the memory cache. */
  readonly onCompiled?: (seconds: number, result: "compiled" | "refused") => void;
}

interface Cached extends CompiledSchema {
  /** `undefined` for boolean schemas. */
  readonly size?: SchemaSize;
}

type Compiled = Result<Cached, readonly Finding[]>;
type Work = WorkerQueue<SchemaRequest, SchemaAnswer>;

/** Compilations of one schema that are in flight, one for each organization that needs the schema. */
interface PendingCompilation {
  readonly byLane: Map<string, Promise<Compiled>>;
  readonly first: PromiseWithResolvers<Compiled>;
  /** Aborts when the first of the compilations is done, which cancels the others. */
  readonly done: AbortController;
}

const MAX_QUEUED_PER_LANE = 1_000;
const MAX_HEAP_MIB = 768;
const DEFAULT_MAX_CODE_LENGTH = 128 * 1024 * 1024;
/**
 * Maximum length of a short schema, in characters. Longer schemas have a separate worker, so that short ones never wait for them.
 */
const MAX_SMALL_LENGTH = 8 * 1024;
/**
 * CPU time limit in ms for compiling a short schema, which usually takes 35 ms. After the limit, the worker for long schemas
 * compiles it instead.
 */
const MAX_SMALL_CPU_MS = 500;
/**
 * Maximum length of generated code to evaluate on the calling thread, in characters. The code for GitHub's largest event (400 kB) takes 7
 * ms, and the code for all of its events (4 MB) takes 77 ms.
 */
const MAX_CODE_LENGTH_HERE = 512 * 1024;
/**
 * Maximum cost of a schema to run on the calling thread: the number of subschemas that apply to the same place. A cost of 100,000 takes
 * about 15 ms. The highest cost of a GitHub event is 20,865.
 */
const MAX_COST_HERE = 25_000;
/**
 * Maximum total size of regular expressions to build on the calling thread, in automaton instructions. Building this many takes
 * about 20 ms.
 */
const MAX_PATTERN_SIZE_HERE = 5_000;
/**
 * Budget for matching regular expressions against one value on the calling thread, in characters × instructions. Using up the
 * budget takes at most 50 ms.
 */
const PATTERN_BUDGET_HERE = 1_000_000;

/** Report a violation instead of throwing. Callers retry after an error, and would retry the same value forever. */
const TOO_COSTLY: SchemaViolation = {
  path: "",
  message: "takes too much CPU time or memory to validate",
  isInconclusive: true,
};

/**
 * Creates the compiler with three worker threads, which start on first use. One compiles short schemas and one compiles long
 * schemas. The third validates values that are too expensive for the calling thread. Values therefore never wait for compilations,
 * and short schemas never wait for long ones.
 */
export function startSchemaCompiler(options: SchemaCompilerOptions = {}): SchemaCompiler {
  const { maxCompileCpuMs = 10_000, maxCheckCpuMs = 3_000 } = options;
  const maxSmallCpuMs = Math.min(maxCompileCpuMs, MAX_SMALL_CPU_MS);
  const short = createQueue("short schemas", maxSmallCpuMs);
  const long = createQueue("long schemas", maxCompileCpuMs);
  const checking = createQueue("schema checks", maxCheckCpuMs);
  const takeTurn = createTurns();
  const cache = new LRUCache<string, Cached>({
    maxSize: options.maxCodeLength ?? DEFAULT_MAX_CODE_LENGTH,
  });
  const digests = new WeakMap<object, string>();
  const inFlight = new Map<string, PendingCompilation>();

  async function compile(
    schema: JsonSchema,
    lane: string,
    maxLength = Number.POSITIVE_INFINITY,
  ): Promise<Compiled> {
    const warm = peek(schema);
    if (warm) return ok(warm);
    const text = await takeTurn(() => toCanonicalText(schema));
    if (text === undefined) return err([{ path: "", message: "is nested too deeply to compile" }]);
    if (text.length > maxLength) return err([TOO_LONG]);
    const digest = createHash("sha256").update(text).digest("base64url");
    // Boolean schemas need no digest, because `peek` handles them separately.
    if (typeof schema === "object") digests.set(schema, digest);
    const known = cache.get(digest);
    if (known) return ok(known);
    return compileOnce(text, digest, lane);
  }

  /**
   * Compiles a schema once per organization that needs it, so that no organization waits for another's jobs. The first result is
   * used for all of them.
   */
  function compileOnce(text: string, digest: string, lane: string): Promise<Compiled> {
    const work = inFlight.get(digest) ?? {
      byLane: new Map(),
      first: Promise.withResolvers(),
      done: new AbortController(),
    };
    inFlight.set(digest, work);
    const { byLane, first, done } = work;
    const begin = async (): Promise<Compiled> => {
      try {
        const compiled = await Promise.race([
          first.promise,
          compileText(text, digest, { lane, signal: done.signal }),
        ]);
        first.resolve(compiled);
        done.abort();
        if (inFlight.get(digest) === work) inFlight.delete(digest);
        return compiled;
      } finally {
        byLane.delete(lane);
        if (byLane.size === 0 && inFlight.get(digest) === work) inFlight.delete(digest);
      }
    };
    const asked = byLane.get(lane) ?? begin();
    byLane.set(lane, asked);
    return asked;
  }

  async function compileText(text: string, digest: string, caller: JobOptions): Promise<Compiled> {
    const sinceMs = performance.now();
    const report = (result: "compiled" | "refused"): void =>
      options.onCompiled?.((performance.now() - sinceMs) / 1000, result);
    const generated = await generate(text, caller);
    if (!generated.ok) {
      report("refused");
      return generated;
    }
    const { code, cost } = generated.value;
    const checkThere = checkInWorker(digest, code, checking);
    const inWorker: CompiledSchema["validate"] = (value, caller) => checkThere({ value }, caller);
    const validate = isCheap(generated.value) ? await takeTurn(() => checkHere(code, inWorker)) : inWorker;
    const size = { textLength: text.length, codeLength: code.length, cost };
    const compiled: Cached = {
      validate,
      validateJson: (json, caller) => checkThere({ json }, caller),
      size,
      generated: { digest, code },
    };
    cache.set(digest, compiled, { size: code.length });
    report("compiled");
    return ok(compiled);
  }

  async function generate(
    text: string,
    caller: JobOptions,
  ): Promise<Result<GeneratedCode, readonly Finding[]>> {
    const request = { kind: "compile", text } as const;
    options.quota?.require(caller.lane);
    const spend = (cpuMs: number): void => options.quota?.spend(caller.lane, cpuMs);
    let answer: SchemaAnswer | Exceeded = { kind: "exceeded" };
    if (text.length <= MAX_SMALL_LENGTH) {
      answer = await short.run(request, caller);
      if (answer.kind === "exceeded") spend(maxSmallCpuMs);
    }
    if (answer.kind === "exceeded") {
      answer = await long.run(request, caller);
      if (answer.kind === "exceeded") spend(maxCompileCpuMs);
    }
    if (answer.kind === "compiled") {
      spend(answer.cpuMs);
      return answer.result;
    }
    if (answer.kind !== "exceeded")
      throw new Error(`the schema worker returned the unexpected answer ${answer.kind}`);
    return err([{ path: "", message: "takes too much CPU time or memory to compile" }]);
  }

  function peek(schema: JsonSchema): Cached | undefined {
    if (typeof schema === "boolean") return validatorOf(schema);
    const digest = digests.get(schema);
    return digest === undefined ? undefined : cache.get(digest);
  }

  return {
    // Aborting ends only the wait. The compilation continues, because other callers may need the result.
    compile: (schema, { signal, lane }) => unlessAborted(signal, compile(schema, lane)),
    async check(schema, { signal, lane }) {
      const compiled = await unlessAborted(signal, compile(schema, lane, MAX_STORED_LENGTH));
      return compiled.ok ? findExcess(compiled.value.size) : compiled.error;
    },
    peek,
    [Symbol.asyncDispose]: async () => {
      await Promise.all([short, long, checking].map((queue) => queue[Symbol.asyncDispose]()));
    },
  };
}

const createQueue = (name: string, maxCpuMs: number): Work =>
  createWorkerQueue({
    program: new URL("./worker.ts", import.meta.url),
    name,
    maxCpuMs,
    maxQueuedPerLane: MAX_QUEUED_PER_LANE,
    maxHeapMiB: MAX_HEAP_MIB,
  });

/**
 * Runs the validator on the calling thread. If matching patterns exceeds the budget, a worker thread validates the value instead.
 */
function checkHere(code: string, inWorker: CompiledSchema["validate"]): CompiledSchema["validate"] {
  const check = evaluateCode(code, { patternBudget: PATTERN_BUDGET_HERE });
  return (value, caller) => {
    try {
      return check(value);
    } catch (error) {
      if (error instanceof PatternBudgetError) return inWorker(value, caller);
      throw error;
    }
  };
}

function checkInWorker(digest: string, code: string, worker: Work) {
  return async (checked: CheckedValue, caller: JobOptions): Promise<SchemaViolation | undefined> => {
    const first = await worker.run({ kind: "check", digest, checked }, caller);
    // Send the code only if the worker has not cached it, because the code is large.
    const answer =
      first.kind === "missing" ? await worker.run({ kind: "check", digest, code, checked }, caller) : first;
    switch (answer.kind) {
      case "checked":
        return answer.violation;
      case "exceeded":
        return TOO_COSTLY;
      default:
        throw new Error(`the schema worker returned the unexpected answer ${answer.kind}`);
    }
  };
}

const isCheap = ({ code, cost, patternSize }: GeneratedCode): boolean =>
  code.length <= MAX_CODE_LENGTH_HERE && cost <= MAX_COST_HERE && patternSize <= MAX_PATTERN_SIZE_HERE;

function toCanonicalText(schema: JsonSchema): string | undefined {
  try {
    return canonicalJson(schema);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}
