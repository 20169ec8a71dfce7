import type { ChannelKindName } from "../../event/channel.ts";
import { listSchemas } from "../../event/definition.ts";
import type { VerifiedDelivery } from "../../event/received.ts";
import { err, ok, type Result } from "../../lib/result.ts";
import { unlessAborted } from "../../lib/wait.ts";
import { createWorkerQueue, type Exceeded, type JobOptions } from "../../lib/worker-queue.ts";
import { FairLimiter } from "../../limits/fairness.ts";
import type { RulePath } from "../../normalize/compile.ts";
import { explainEach } from "../../normalize/explain.ts";
import { type Fault, invalidBody } from "../../normalize/fault.ts";
import {
  abortAfter,
  createFailure,
  type NormalizeDeps,
  type Normalized,
  normalize,
} from "../../normalize/normalize.ts";
import { failRouting, type Routed, routeItems } from "../../normalize/route-items.ts";
import type { RuleSet } from "../../normalize/rule-set.ts";
import type { Explainer, ItemRouter, Normalizer } from "../normalizer.ts";
import { withBuffers } from "./large-values.ts";
import type { SentRules, WorkerAnswer, WorkerKind, WorkerRequest } from "./normalize-worker.ts";
import { fromSentRouted } from "./sent-groups.ts";

/**
 * Maximum CPU time of one delivery, in ms. It is shorter than the timeouts of senders, so that a costly delivery is quarantined instead of
 * being retried forever.
 */
const MAX_CPU_MS = 3_000;
/** Maximum number of waiting deliveries per organization. The limit bounds memory, because waiting deliveries keep their bodies. */
const MAX_QUEUED_PER_LANE = 100;
/**
 * Maximum number of waiting deliveries that the gateway fetched. Further fetched deliveries wait outside the queue, because no sender waits
 * for a response.
 */
const MAX_PULLED = 50;
const MAX_HEAP_MIB = 1_024;

type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never;
/** A job with the rules of a channel, which `runInWorker` adds. */
type Job = DistributiveOmit<Exclude<WorkerRequest, { kind: "read" }>, "rulesId" | "rules">;

export interface NormalizeQueueDeps extends NormalizeDeps {
  /** Program of the worker thread. It calls `serveNormalizeJobs`. */
  readonly program: URL;
}

export interface NormalizeQueue extends AsyncDisposable {
  readonly normalize: Normalizer;
  readonly explain: Explainer;
  readonly route: ItemRouter;
  /** Returns a function that runs `readLarge` of a channel kind on the worker thread. `lane` is the id of the organization. */
  readonly readFor: (
    kind: Pick<WorkerKind, "readLarge"> & { readonly kind: ChannelKindName },
  ) => (request: unknown, lane: string) => Promise<Result<unknown, Fault>>;
}

/**
 * Normalizes and routes large deliveries on a worker thread, round-robin between organizations. Large values in the results are transferred, not
 * copied.
 */
export function startNormalizeQueue({ program, ...deps }: NormalizeQueueDeps): NormalizeQueue {
  const queue = createWorkerQueue<WorkerRequest, WorkerAnswer>({
    program,
    name: "large deliveries",
    maxCpuMs: MAX_CPU_MS,
    maxQueuedPerLane: MAX_QUEUED_PER_LANE,
    maxHeapMiB: MAX_HEAP_MIB,
    toSend: withOwnBody,
  });
  const pulledLimiter = new FairLimiter(MAX_PULLED);
  const ids = new WeakMap<RuleSet, number>();
  let lastId = 0;

  function idOf(rules: RuleSet): number {
    const known = ids.get(rules) ?? ++lastId;
    ids.set(rules, known);
    return known;
  }

  /** Adds the generated code of all schemas to the rules. Compiles schemas that have no generated code yet. */
  async function createSentRules(rules: RuleSet): Promise<SentRules> {
    const { channel, config, definitions, topics, schemaNames, reading } = rules;
    const generated: SentRules["generated"][number][] = [];
    for (const schema of listSchemas(definitions)) {
      const { generated: code } = await deps.validatorFor(schema, channel.organizationId);
      generated.push(code);
    }
    return { channel, config, definitions, topics, schemaNames, reading, generated };
  }

  /**
   * Runs a job with the rules that the worker thread has cached. If the rules are missing there, sends the rules and runs the job again.
   */
  async function runInWorker(caller: JobOptions, rules: RuleSet, job: Job): Promise<WorkerAnswer | Exceeded> {
    const request = { ...job, rulesId: idOf(rules) };
    const first = await queue.run(request, caller);
    if (first.kind !== "missing") return first;
    const sent = createSentRules(rules);
    // A caller that gives up must not wait for the compilation, because its delivery would stay in memory. The compilation itself
    // continues.
    return queue.run({ ...request, rules: await unlessAbandoned(caller, sent) }, caller);
  }

  async function normalizeInWorker(caller: JobOptions, ...args: Parameters<Explainer>): Promise<Normalized> {
    const [rules, delivery, only] = args;
    const answer = await runInWorker(caller, rules, { kind: "normalize", delivery, only });
    if (answer.kind === "normalized") return withBuffers(answer.normalized);
    if (answer.kind === "exceeded") return createFailure(TOO_COSTLY, only);
    if (answer.kind === "unknownKind") return normalize(rules, delivery, deps, only);
    throw unexpected(answer);
  }

  async function routeInWorker(
    caller: JobOptions,
    rules: RuleSet,
    paths: readonly RulePath[],
    delivery: VerifiedDelivery,
  ): Promise<Routed> {
    const routeBy = paths.map(({ text }) => text);
    const answer = await runInWorker(caller, rules, { kind: "route", delivery, routeBy });
    if (answer.kind === "routed") return fromSentRouted(answer.routed, delivery);
    if (answer.kind === "exceeded") return failRouting(delivery, TOO_COSTLY);
    if (answer.kind === "unknownKind") return routeItems(rules, paths, delivery);
    throw unexpected(answer);
  }

  /** Normalizes a fetched delivery. Waits for room in the queue, because a rejection would force the source to reconnect. */
  async function normalizePulled(...args: Parameters<Explainer>): Promise<Normalized> {
    const lane = args[0].channel.organizationId;
    using _ = await pulledLimiter.acquire(1, { signal: NEVER_ABORTED, owner: lane });
    return await normalizeInWorker({ lane, mayExceedQueue: true }, ...args);
  }

  return {
    normalize(rules, delivery, only, maxWaitMs) {
      if (maxWaitMs === undefined) return normalizePulled(rules, delivery, only);
      const leaving = new AbortController();
      const caller = { lane: rules.channel.organizationId, signal: leaving.signal };
      return abortAfter(maxWaitMs, normalizeInWorker(caller, rules, delivery, only), leaving);
    },
    route(rules, paths, delivery, maxWaitMs) {
      const leaving = new AbortController();
      const caller = { lane: rules.channel.organizationId, signal: leaving.signal };
      return abortAfter(maxWaitMs, routeInWorker(caller, rules, paths, delivery), leaving);
    },
    async explain(rules, delivery, only) {
      const caller = { lane: rules.channel.organizationId };
      const answer = await runInWorker(caller, rules, { kind: "explain", delivery, only });
      if (answer.kind === "explained") return answer.explained;
      if (answer.kind === "exceeded") return createFailure(TOO_COSTLY, only);
      if (answer.kind === "unknownKind") return explainEach(rules, delivery, deps, only);
      throw unexpected(answer);
    },
    readFor:
      ({ kind: channelKind, readLarge }) =>
      async (request, lane) => {
        const answer = await queue.run({ kind: "read", channelKind, request }, { lane });
        if (answer.kind === "exceeded") return err(TOO_COSTLY);
        if (answer.kind === "read") return ok(answer.read);
        // Tests may add a channel kind that the worker thread does not know. Its `readLarge` runs on this thread.
        if (answer.kind === "unknownKind" && readLarge !== undefined) return ok(readLarge(request));
        throw unexpected(answer);
      },
    [Symbol.asyncDispose]: () => queue[Symbol.asyncDispose](),
  };
}

/** Copies the body, so that its buffer can be transferred. Otherwise the larger buffer that contains the body would be copied. */
function withOwnBody(request: WorkerRequest): readonly [WorkerRequest, readonly ArrayBuffer[]] {
  if (request.kind === "read") return [request, []];
  const { delivery } = request;
  const body = Buffer.allocUnsafeSlow(delivery.body.length);
  delivery.body.copy(body);
  return [{ ...request, delivery: { ...delivery, body } }, [body.buffer]];
}

const unlessAbandoned = <T>({ signal }: JobOptions, work: Promise<T>): Promise<T> =>
  signal ? unlessAborted(signal, work) : work;

const NEVER_ABORTED = new AbortController().signal;

const TOO_COSTLY = invalidBody("processing the delivery takes too much time or memory");

const unexpected = ({ kind }: WorkerAnswer): Error =>
  new Error(`the worker thread sent an unexpected reply: ${kind}`);
