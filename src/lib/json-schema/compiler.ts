import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Finding } from "../errors.ts";
import { canonicalJson } from "../json/canonical-json.ts";
import { err, ok, type Result } from "../result.ts";
import { unlessAborted } from "../wait.ts";
import { type Asker, createWorkerQueue, type Exceeded, type WorkerQueue } from "../worker-queue.ts";
import type { CompileQuota } from "./compile-quota.ts";
import type { CompiledSchema, JsonSchema, SchemaCompiler, SchemaViolation } from "./compiled-schema.ts";
import { evaluateCode, PatternBudgetError, validatorOf } from "./evaluate.ts";
import type { GeneratedCode } from "./generate/generate.ts";
import type { SchemaAnswer, SchemaRequest } from "./worker.ts";

/** Keeps generated code from one start to the next. What it finds is evaluated: it must be what was kept, and nothing else. */
export interface CodeStore {
  readonly find: (digest: string) => Promise<GeneratedCode | undefined>;
  readonly keep: (digest: string, generated: GeneratedCode) => void;
}

export interface SchemaCompilerOptions {
  readonly codeStore?: CodeStore;
  /** Of all generated code that is kept in memory, in characters. */
  readonly maxCodeLength?: number;
  readonly maxCompileCpuMs?: number;
  /** Of one value in the worker. */
  readonly maxCheckCpuMs?: number;
  /** What each lane may spend; default: any amount. */
  readonly quota?: CompileQuota;
  /** Told of each schema that was not in memory, once it is ready or refused. */
  readonly onCompiled?: (result: "stored" | "compiled" | "refused", seconds: number) => void;
}

/** In the cache; a boolean takes nothing. */
interface Cached extends CompiledSchema {
  readonly size?: { readonly textLength: number; readonly codeLength: number; readonly cost: number };
}

type Compiled = Result<Cached, readonly Finding[]>;
type Work = WorkerQueue<SchemaRequest, SchemaAnswer>;

/** The compilations of one schema that are under way: one in the lane of each who asks. */
interface UnderWay {
  readonly byLane: Map<string, Promise<Compiled>>;
  readonly first: PromiseWithResolvers<Compiled>;
  /** Aborts when the first is done. */
  readonly done: AbortController;
}

const MAX_QUEUED_PER_LANE = 1_000;
const MAX_HEAP_MIB = 768;
const DEFAULT_MAX_CODE_LENGTH = 128 * 1024 * 1024;
/** Of a schema's text: a longer one does not compete with those that are compiled in some milliseconds. */
const MAX_SMALL_LENGTH = 8 * 1024;
/** A short schema takes 35 ms; one that takes longer goes on among the long ones. */
const MAX_SMALL_CPU_MS = 500;
/** Of a schema that is to be stored, its text and its generated code. All events of GitHub in one schema have 340,000 and 4 million. */
const MAX_STORED_LENGTH = 512 * 1024;
const MAX_STORED_CODE_LENGTH = 8 * 1024 * 1024;
/** Applications of subschemas to one place of a value, where that can be told: 150 ms for each place. */
const MAX_STORED_COST = 1_000_000;
/** Evaluating GitHub's largest event, 400 kB, took 7 ms and its first use 5 ms; the union of all, 4 MB, 77 ms. */
const MAX_CODE_LENGTH_HERE = 512 * 1024;
/** GitHub's costliest event has 20,865; applying 100,000 subschemas takes some 15 ms. */
const MAX_COST_HERE = 25_000;
/** 5,000 instructions take some 20 ms to build. */
const MAX_PATTERN_SIZE_HERE = 5_000;
/** In characters × instructions: 50 ms at the very worst, and more than most values ever need. */
const PATTERN_BUDGET_HERE = 1_000_000;

const TOO_LONG: Finding = { path: "", message: `has more than ${MAX_STORED_LENGTH} characters` };

/** Not a failure to be retried: the same value would take as long again, and hold up its source for ever. */
const TOO_COSTLY: SchemaViolation = {
  path: "",
  message: "takes too much time or memory to be checked against its schema",
};

/**
 * Three worker threads, each started when first needed: one generates code from short schemas, one from long ones, the third
 * checks values against what is too costly for this thread. So no value waits behind a compilation, and no short schema
 * behind a long one.
 */
export function startSchemaCompiler(options: SchemaCompilerOptions = {}): SchemaCompiler {
  const { codeStore, maxCompileCpuMs = 10_000, maxCheckCpuMs = 3_000 } = options;
  const maxSmallCpuMs = Math.min(maxCompileCpuMs, MAX_SMALL_CPU_MS);
  const short = createQueue("short schemas", maxSmallCpuMs);
  const long = createQueue("long schemas", maxCompileCpuMs);
  const checking = createQueue("schema checks", maxCheckCpuMs);
  const takeTurn = createTurns();
  const cache = new LRUCache<string, Cached>({
    maxSize: options.maxCodeLength ?? DEFAULT_MAX_CODE_LENGTH,
  });
  const digests = new WeakMap<object, string>();
  const underWay = new Map<string, UnderWay>();

  async function compile(
    schema: JsonSchema,
    lane: string,
    maxLength = Number.POSITIVE_INFINITY,
  ): Promise<Compiled> {
    const warm = peek(schema);
    if (warm) return ok(warm);
    const text = await takeTurn(() => textOf(schema));
    if (text === undefined) return err([{ path: "", message: "is nested too deeply to be compiled" }]);
    if (text.length > maxLength) return err([TOO_LONG]);
    const digest = createHash("sha256").update(text).digest("base64url");
    // A boolean is always warm.
    if (typeof schema === "object") digests.set(schema, digest);
    const known = cache.get(digest);
    if (known) return ok(known);
    return compileOnce(text, digest, lane);
  }

  /** In the lane of each who asks, so that nobody waits in another's line; the first to be done answers all. */
  function compileOnce(text: string, digest: string, lane: string): Promise<Compiled> {
    const work = underWay.get(digest) ?? {
      byLane: new Map(),
      first: Promise.withResolvers(),
      done: new AbortController(),
    };
    underWay.set(digest, work);
    const { byLane, first, done } = work;
    const begin = async (): Promise<Compiled> => {
      try {
        const compiled = await Promise.race([
          first.promise,
          compileText(text, digest, { lane, signal: done.signal }),
        ]);
        first.resolve(compiled);
        done.abort();
        if (underWay.get(digest) === work) underWay.delete(digest);
        return compiled;
      } finally {
        byLane.delete(lane);
        if (byLane.size === 0 && underWay.get(digest) === work) underWay.delete(digest);
      }
    };
    const asked = byLane.get(lane) ?? begin();
    byLane.set(lane, asked);
    return asked;
  }

  async function compileText(text: string, digest: string, asker: Asker): Promise<Compiled> {
    const sinceMs = performance.now();
    const told = (result: "stored" | "compiled" | "refused"): void =>
      options.onCompiled?.(result, (performance.now() - sinceMs) / 1000);
    const kept = await codeStore?.find(digest);
    const answer = kept ? ok(kept) : await generate(text, asker);
    if (!answer.ok) {
      told("refused");
      return answer;
    }
    const generated = answer.value;
    if (!kept) codeStore?.keep(digest, generated);
    const { code } = generated;
    const inWorker = checkInWorker(digest, code, checking);
    const validate = isCheap(generated) ? await takeTurn(() => checkHere(code, inWorker)) : inWorker;
    const size = { textLength: text.length, codeLength: code.length, cost: generated.cost };
    const compiled = { validate, size, generated: { digest, code } };
    cache.set(digest, compiled, { size: code.length });
    told(kept ? "stored" : "compiled");
    return ok(compiled);
  }

  async function generate(text: string, asker: Asker): Promise<Result<GeneratedCode, readonly Finding[]>> {
    const request = { kind: "compile", text } as const;
    options.quota?.require(asker.lane);
    const spend = (cpuMs: number): void => options.quota?.spend(asker.lane, cpuMs);
    let answer: SchemaAnswer | Exceeded = { kind: "exceeded" };
    if (text.length <= MAX_SMALL_LENGTH) {
      answer = await short.run(request, asker);
      if (answer.kind === "exceeded") spend(maxSmallCpuMs);
    }
    if (answer.kind === "exceeded") {
      answer = await long.run(request, asker);
      if (answer.kind === "exceeded") spend(maxCompileCpuMs);
    }
    if (answer.kind === "compiled") {
      spend(answer.cpuMs);
      return answer.result;
    }
    if (answer.kind !== "exceeded") throw new Error(`the schema worker answered ${answer.kind}`);
    return err([{ path: "", message: "takes too much time or memory to be compiled" }]);
  }

  function peek(schema: JsonSchema): Cached | undefined {
    if (typeof schema === "boolean") return validatorOf(schema);
    const digest = digests.get(schema);
    return digest === undefined ? undefined : cache.get(digest);
  }

  return {
    // The compilation itself goes on: others may wait for it, and the next to ask finds it in the cache.
    compile: (schema, { signal, lane }) => unlessAborted(signal, compile(schema, lane)),
    async check(schema, { signal, lane }) {
      const compiled = await unlessAborted(signal, compile(schema, lane, MAX_STORED_LENGTH));
      return compiled.ok ? findExcess(compiled.value) : compiled.error;
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

/** A value whose patterns would hold this thread up goes to the worker. */
function checkHere(code: string, inWorker: CompiledSchema["validate"]): CompiledSchema["validate"] {
  const check = evaluateCode(code, { patternBudget: PATTERN_BUDGET_HERE });
  return (value, asker) => {
    try {
      return check(value);
    } catch (error) {
      if (error instanceof PatternBudgetError) return inWorker(value, asker);
      throw error;
    }
  };
}

function checkInWorker(digest: string, code: string, worker: Work): CompiledSchema["validate"] {
  return async (value, asker) => {
    const first = await worker.run({ kind: "check", digest, value }, asker);
    // Code is large: it is sent only where the worker has not seen it, or no longer holds it.
    const answer =
      first.kind === "missing" ? await worker.run({ kind: "check", digest, code, value }, asker) : first;
    switch (answer.kind) {
      case "checked":
        return answer.violation;
      case "exceeded":
        return TOO_COSTLY;
      default:
        throw new Error(`the schema worker answered ${answer.kind}`);
    }
  };
}

const isCheap = ({ code, cost, patternSize }: GeneratedCode): boolean =>
  code.length <= MAX_CODE_LENGTH_HERE && cost <= MAX_COST_HERE && patternSize <= MAX_PATTERN_SIZE_HERE;

/** A cost without end is that of schemas that recurse: their values decide, each within its own bound. */
function findExcess({ size }: Cached): readonly Finding[] {
  if (size === undefined) return [];
  const { textLength, codeLength, cost } = size;
  if (textLength > MAX_STORED_LENGTH) return [TOO_LONG];
  if (codeLength > MAX_STORED_CODE_LENGTH)
    return [{ path: "", message: `becomes more than ${MAX_STORED_CODE_LENGTH} characters of code` }];
  if (!Number.isFinite(cost) || cost <= MAX_STORED_COST) return [];
  const message = `applies its subschemas to one value up to ${cost} times, more than ${MAX_STORED_COST}`;
  return [{ path: "", message }];
}

function textOf(schema: JsonSchema): string | undefined {
  try {
    return canonicalJson(schema);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** Runs one piece of work per turn of the event loop, in order of asking, so that many pieces never add up to a stall. */
function createTurns(): <T>(work: () => T) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const turn = last.then(() => new Promise<void>((resolve) => setImmediate(resolve))).then(work);
    last = turn.catch(() => undefined);
    return turn;
  };
}
