/**
 * The program of the worker thread. It normalizes large deliveries, with rules and code that it receives once, and runs `readLarge` of
 * channel kinds.
 */
import { parentPort } from "node:worker_threads";
import { LRUCache } from "lru-cache";
import { channelKinds } from "../channels/kinds.ts";
import type { ChannelKindName } from "../event/channel.ts";
import type { Definition } from "../event/definition.ts";
import type { VerifiedDelivery } from "../event/received.ts";
import { freeBuffer } from "../lib/free-buffer.ts";
import { createId } from "../lib/ids.ts";
import type { CompiledSchema } from "../lib/json-schema/compiled-schema.ts";
import { type Check, evaluateCode, validatorOf } from "../lib/json-schema/evaluate.ts";
import { goBehindOtherThreads } from "../lib/thread-priority.ts";
import { compileRules, type RuleSet, type RuleSource } from "../normalize/compile.ts";
import { type Explained, explainEach } from "../normalize/explain.ts";
import { type Normalized, normalize, type Selection } from "../normalize/normalize.ts";
import { withLargeValues } from "./large-values.ts";

/** Rules in a form that can be sent to the thread. The channel's kind identifies the profile. */
export interface SentRules extends Omit<RuleSource, "profile"> {
  /** One entry per definition. `undefined` if the definition has no schema, or its schema needs no code. */
  readonly generated: readonly CompiledSchema["generated"][];
}

export type WorkerRequest =
  | (NormalizeRequest & { readonly kind: "normalize" | "explain" })
  /** A job for `readLarge` of a channel kind. */
  | { readonly kind: "read"; readonly channelKind: ChannelKindName; readonly request: unknown };

export interface NormalizeRequest {
  /** Identifies a rule set for the lifetime of the process. */
  readonly rulesId: number;
  /** If they are missing and the worker does not have them, it answers `missing`. */
  readonly rules?: SentRules;
  readonly delivery: VerifiedDelivery;
  readonly only: Selection | undefined;
}

export type WorkerAnswer =
  | { readonly kind: "normalized"; readonly normalized: Normalized }
  | { readonly kind: "explained"; readonly explained: Explained }
  | { readonly kind: "read"; readonly read: unknown }
  | { readonly kind: "missing" }
  /** The channel kind exists only in the gateway, for example in a test. */
  | { readonly kind: "unknownKind" };

interface HeldRules {
  readonly rules: RuleSet;
  readonly digests: ReadonlyMap<Definition["schema"], string>;
}

const MAX_HELD_RULES = 256;
/** Maximum code in characters, evaluated or not. Fifty schemas of 75 kB generate about 80 MB, so two such channels fit. */
const MAX_HELD_CODE = 160 * 1024 * 1024;

/** Source text until its first use, then the evaluated function. */
interface HeldCode {
  code: string | Check;
}

function createAnswers(): (request: WorkerRequest) => WorkerAnswer | Promise<WorkerAnswer> {
  const held = new LRUCache<number, HeldRules>({ max: MAX_HELD_RULES });
  const codes = new LRUCache<string, HeldCode>({ maxSize: MAX_HELD_CODE });

  function hold(id: number, { generated, ...source }: SentRules): HeldRules | undefined {
    const profile = channelKinds.get(source.channel.kind)?.profile;
    if (profile === undefined) return undefined;
    const compiled = compileRules({ ...source, profile });
    if (!compiled.ok) throw new Error("rules that compiled in the gateway do not compile in the worker");
    const digests = new Map(
      source.definitions.map(({ schema }, index) => [schema, generated[index]?.digest ?? ""] as const),
    );
    const entry = { rules: compiled.value, digests };
    held.set(id, entry);
    return entry;
  }

  return (request) => {
    if (request.kind === "read") {
      const readLarge = channelKinds.get(request.channelKind)?.readLarge;
      return readLarge ? { kind: "read", read: readLarge(request.request) } : { kind: "unknownKind" };
    }
    const { rulesId, rules: sent, delivery, only } = request;
    const entry = sent ? hold(rulesId, sent) : held.get(rulesId);
    if (!entry) return { kind: sent ? "unknownKind" : "missing" };
    const { rules, digests } = entry;
    // The code for this job. The cache may evict entries while the job runs.
    const own = new Map<string, HeldCode>();
    for (const digest of new Set(digests.values())) {
      if (digest === "") continue;
      const code = sent?.generated.find((one) => one?.digest === digest)?.code;
      const one = codes.get(digest) ?? (code === undefined ? undefined : keep(digest, code));
      if (one === undefined) return { kind: "missing" };
      own.set(digest, one);
    }
    const validatorFor = (schema: NonNullable<Definition["schema"]>): CompiledSchema => {
      if (typeof schema === "boolean") return validatorOf(schema);
      const one = own.get(digests.get(schema) ?? "");
      if (!one) throw new Error("a schema was sent without its code");
      // Evaluate late, so that the job's CPU time only pays for definitions that match.
      if (typeof one.code === "string") one.code = evaluate(one.code);
      return { validate: one.code };
    };
    const { buffer, byteOffset, byteLength } = delivery.body;
    // Buffers arrive as plain byte arrays.
    const whole = { ...delivery, body: Buffer.from(buffer, byteOffset, byteLength) };
    const deps = { validatorFor, newEventId: () => createId("evt", Date.now()) };
    if (request.kind === "explain") {
      return explainEach(rules, whole, deps, only).then((explained) => ({ kind: "explained", explained }));
    }
    const normalized = normalize(rules, whole, deps, only);
    if (normalized instanceof Promise) throw new Error("normalizing in the worker must be synchronous");
    return { kind: "normalized", normalized };
  };

  function keep(digest: string, code: string): HeldCode {
    const one = { code };
    codes.set(digest, one, { size: code.length });
    return one;
  }

  // The main thread limits the time by terminating this thread, so patterns need no budget of their own.
  function evaluate(code: string): Check {
    return evaluateCode(code, { patternBudget: Number.POSITIVE_INFINITY });
  }
}

if (!parentPort) throw new Error("normalize-worker.ts runs as a worker thread");
const port = parentPort;
goBehindOtherThreads();
const answer = createAnswers();
port.on("message", async (request: WorkerRequest) => {
  const answered = await answer(request);
  if (answered.kind === "normalized") {
    const [normalized, moved] = withLargeValues(answered.normalized);
    port.postMessage({ ...answered, normalized }, moved);
  } else port.postMessage(answered);
  // The body is a copy made for this job, so its memory can be freed.
  if (request.kind !== "read") freeBuffer(request.delivery.body);
});
port.postMessage({ kind: "ready" });
