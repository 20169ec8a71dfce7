import { parentPort } from "node:worker_threads";
import { LRUCache } from "lru-cache";
import type { ChannelKindName } from "../../event/channel.ts";
import { type Definition, listSchemas } from "../../event/definition.ts";
import type { VerifiedDelivery } from "../../event/received.ts";
import { freeBuffer } from "../../lib/free-buffer.ts";
import { createId } from "../../lib/ids.ts";
import type { CompiledSchema } from "../../lib/json-schema/compiled-schema.ts";
import { type Check, evaluateCode, validatorOf } from "../../lib/json-schema/evaluate.ts";
import { goBehindOtherThreads } from "../../lib/thread-priority.ts";
import { type Explained, explainEach } from "../../normalize/explain.ts";
import { type Normalized, normalize, type Selection } from "../../normalize/normalize.ts";
import type { KindProfile } from "../../normalize/profile.ts";
import { type Routed, routeItems } from "../../normalize/route-items.ts";
import { compileRoutes } from "../../normalize/routes.ts";
import { compileRules, type RuleSet, type RuleSource } from "../../normalize/rule-set.ts";
import { withLargeValues } from "./large-values.ts";
import { type SentRouted, toSentRouted } from "./sent-groups.ts";

/** The properties of a channel kind that the worker thread needs. */
export interface WorkerKind {
  readonly profile: KindProfile;
  readonly readLarge?: (request: unknown) => unknown;
}

/** Normalization rules as sent to a worker thread. The channel kind is sent by name, because functions cannot be sent. */
export interface SentRules extends Omit<RuleSource, "profile"> {
  /** Generated code of the schemas, in the order of `listSchemas`. `undefined` if a schema needs no code. */
  readonly generated: readonly CompiledSchema["generated"][];
}

export type WorkerRequest =
  | (DeliveryRequest & { readonly kind: "normalize" | "explain"; readonly only: Selection | undefined })
  | (DeliveryRequest & { readonly kind: "route"; readonly routeBy: readonly string[] })
  | { readonly kind: "read"; readonly channelKind: ChannelKindName; readonly request: unknown };

export interface DeliveryRequest {
  /** Unique for the lifetime of the process. */
  readonly rulesId: number;
  /** The rules. If omitted, the thread uses the rules it has cached for this id, and responds with `missing` if it has none. */
  readonly rules?: SentRules;
  readonly delivery: VerifiedDelivery;
}

export type WorkerAnswer =
  | { readonly kind: "normalized"; readonly normalized: Normalized }
  | { readonly kind: "explained"; readonly explained: Explained }
  | { readonly kind: "routed"; readonly routed: SentRouted; readonly moved: readonly ArrayBuffer[] }
  | { readonly kind: "read"; readonly read: unknown }
  | { readonly kind: "missing" }
  /** The worker thread does not know this channel kind, because a test has added it. */
  | { readonly kind: "unknownKind" };

type Schema = NonNullable<Definition["schema"]>;

interface HeldRules {
  readonly rules: RuleSet;
  readonly digests: ReadonlyMap<Schema, string>;
}

const MAX_HELD_RULES = 256;
/** Maximum length of the cached code, in characters. It is enough for two channels with fifty schemas of 75 kB each. */
const MAX_HELD_CODE = 160 * 1024 * 1024;

/** Generated code of a schema: text until the first use, then the evaluated function. */
interface HeldCode {
  code: string | Check;
}

/**
 * Runs on the worker thread: normalizes and routes large deliveries, and parses large responses. Caches the rules and code that the main thread sends
 * once.
 */
export function serveNormalizeJobs(channelKinds: ReadonlyMap<ChannelKindName, WorkerKind>): void {
  if (!parentPort) throw new Error("normalizing jobs must be served on a worker thread");
  const port = parentPort;
  goBehindOtherThreads();
  const answer = createAnswers(channelKinds);
  port.on("message", async (request: WorkerRequest) => {
    const answered = await answer(request);
    if (answered.kind === "routed") {
      const { moved, ...routed } = answered;
      port.postMessage(routed, moved);
    } else if (answered.kind === "normalized") {
      const [normalized, moved] = withLargeValues(answered.normalized);
      port.postMessage({ ...answered, normalized }, moved);
    } else port.postMessage(answered);
    // The body is a copy for this job, so its memory can be freed immediately.
    if (request.kind !== "read") freeBuffer(request.delivery.body);
  });
  port.postMessage({ kind: "ready" });
}

function createAnswers(
  channelKinds: ReadonlyMap<ChannelKindName, WorkerKind>,
): (request: WorkerRequest) => WorkerAnswer | Promise<WorkerAnswer> {
  const held = new LRUCache<number, HeldRules>({ max: MAX_HELD_RULES });
  const codes = new LRUCache<string, HeldCode>({ maxSize: MAX_HELD_CODE });

  function hold(id: number, { generated, ...source }: SentRules): HeldRules | undefined {
    const profile = channelKinds.get(source.channel.kind)?.profile;
    if (profile === undefined) return undefined;
    const compiled = compileRules({ ...source, profile });
    if (!compiled.ok) throw new Error("rules that compiled in the gateway do not compile in the worker");
    const digests = new Map(
      listSchemas(source.definitions).map(
        (schema, index) => [schema, generated[index]?.digest ?? ""] as const,
      ),
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
    const { rulesId, rules: sent, delivery } = request;
    const entry = sent ? hold(rulesId, sent) : held.get(rulesId);
    if (!entry) return { kind: sent ? "unknownKind" : "missing" };
    const { rules, digests } = entry;
    const { buffer, byteOffset, byteLength } = delivery.body;
    // The transfer turned the `Buffer` into a plain `Uint8Array`.
    const whole = { ...delivery, body: Buffer.from(buffer, byteOffset, byteLength) };
    if (request.kind === "route") {
      const [routed, moved] = toSentRouted(routeWith(rules, request.routeBy, whole), whole);
      return { kind: "routed", routed, moved };
    }
    const { only } = request;
    // Keeps the code available for the whole job, because the cache may evict it.
    const own = new Map<string, HeldCode>();
    for (const digest of new Set(digests.values())) {
      if (digest === "") continue;
      const code = sent?.generated.find((one) => one?.digest === digest)?.code;
      const one = codes.get(digest) ?? (code === undefined ? undefined : keep(digest, code));
      if (one === undefined) return { kind: "missing" };
      own.set(digest, one);
    }
    const validatorFor = (schema: Schema): CompiledSchema => {
      if (typeof schema === "boolean") return validatorOf(schema);
      const one = own.get(digests.get(schema) ?? "");
      if (!one) throw new Error("a schema was sent without its code");
      // Evaluates code only when a definition matches, because evaluation takes CPU time.
      if (typeof one.code === "string") one.code = evaluate(one.code);
      return { validate: one.code };
    };
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

  // The code needs no CPU limit for regular expressions, because the main thread terminates a job that exceeds its CPU time.
  function evaluate(code: string): Check {
    return evaluateCode(code, { patternBudget: Number.POSITIVE_INFINITY });
  }
}

function routeWith(rules: RuleSet, routeBy: readonly string[], delivery: VerifiedDelivery): Routed {
  const paths = compileRoutes(rules.profile, rules.config, routeBy);
  if (!paths.ok) throw new Error("paths that compiled in the gateway do not compile in the worker");
  return routeItems(rules, paths.value, delivery);
}
