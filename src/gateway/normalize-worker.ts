/** The worker thread's program: normalizes large deliveries, by rules and code that it is sent once, and reads what kinds have fetched. */
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

/** Rules as they can be sent: of the profile the kind's name stands in the channel. */
export interface SentRules extends Omit<RuleSource, "profile"> {
  /** By definition: undefined where it has no schema, or one that needs no code. */
  readonly generated: readonly CompiledSchema["generated"][];
}

export type WorkerRequest =
  | (NormalizeRequest & { readonly kind: "normalize" | "explain" })
  /** For the `readLarge` of a channel kind. */
  | { readonly kind: "read"; readonly channelKind: ChannelKindName; readonly request: unknown };

export interface NormalizeRequest {
  /** Names a rule set for as long as the process lives. */
  readonly rulesId: number;
  /** Without them the worker answers `missing` where it does not hold them. */
  readonly rules?: SentRules;
  readonly delivery: VerifiedDelivery;
  readonly only: Selection | undefined;
}

export type WorkerAnswer =
  | { readonly kind: "normalized"; readonly normalized: Normalized }
  | { readonly kind: "explained"; readonly explained: Explained }
  | { readonly kind: "read"; readonly read: unknown }
  | { readonly kind: "missing" }
  /** A channel kind that was added to the gateway only. */
  | { readonly kind: "unknownKind" };

interface HeldRules {
  readonly rules: RuleSet;
  readonly digests: ReadonlyMap<Definition["schema"], string>;
}

const MAX_HELD_RULES = 256;
/** Of all code, evaluated or not, in characters: fifty schemas of 75 kB are some 80 MB, so that two such channels do not drive each other out. */
const MAX_HELD_CODE = 160 * 1024 * 1024;

/** Text until its first use. */
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
    if (!compiled.ok) throw new Error("rules that compile elsewhere do not compile here");
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
    // Those of this job, whatever the cache lets go of meanwhile.
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
      // Only now: the job's CPU time pays for the definitions that it matches, not for all of its channel.
      if (typeof one.code === "string") one.code = evaluate(one.code);
      return { validate: one.code };
    };
    const { buffer, byteOffset, byteLength } = delivery.body;
    // Buffers arrive as arrays of bytes.
    const whole = { ...delivery, body: Buffer.from(buffer, byteOffset, byteLength) };
    const deps = { validatorFor, newEventId: () => createId("evt", Date.now()) };
    if (request.kind === "explain") {
      return explainEach(rules, whole, deps, only).then((explained) => ({ kind: "explained", explained }));
    }
    const normalized = normalize(rules, whole, deps, only);
    if (normalized instanceof Promise) throw new Error("nothing here answers later");
    return { kind: "normalized", normalized };
  };

  function keep(digest: string, code: string): HeldCode {
    const one = { code };
    codes.set(digest, one, { size: code.length });
    return one;
  }

  // Time is bounded from outside, by the end of this thread.
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
  // The body is a copy that was made for this job.
  if (request.kind !== "read") freeBuffer(request.delivery.body);
});
port.postMessage({ kind: "ready" });
