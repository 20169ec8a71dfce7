import type { ChannelKind, ReadInWorker } from "../channels/kind.ts";
import type { Explainer, Normalizer } from "../ingest/normalizer.ts";
import { createLimiter } from "../lib/limiter.ts";
import { err, ok } from "../lib/result.ts";
import { unlessAborted } from "../lib/wait.ts";
import { createWorkerQueue, type Exceeded, type JobOptions } from "../lib/worker-queue.ts";
import type { RuleSet } from "../normalize/compile.ts";
import { explainEach } from "../normalize/explain.ts";
import { invalidBody } from "../normalize/fault.ts";
import {
  abortAfter,
  createFailure,
  type NormalizeDeps,
  type Normalized,
  normalize,
} from "../normalize/normalize.ts";
import { withBuffers } from "./large-values.ts";
import type { SentRules, WorkerAnswer, WorkerRequest } from "./normalize-worker.ts";

/**
 * Maximum CPU time of one delivery. It is shorter than a sender's timeout, so that a costly delivery is quarantined. Otherwise its sender
 * would retry it again and again.
 */
const MAX_CPU_MS = 3_000;
/** Maximum number of queued deliveries per organization. It is limited because their bodies stay in memory. */
const MAX_QUEUED_PER_LANE = 100;
/**
 * Maximum number of fetched deliveries in the queue, for all organizations and in addition to the others. No sender waits for them, so the
 * remaining deliveries of a source wait outside the queue.
 */
const MAX_PULLED = 50;
const MAX_HEAP_MIB = 1_024;

export interface NormalizeQueue extends AsyncDisposable {
  readonly normalize: Normalizer;
  readonly explain: Explainer;
  /** Returns a function that runs a channel kind's `readLarge` on the worker thread. */
  readonly readFor: (kind: Pick<ChannelKind, "kind" | "readLarge">) => ReadInWorker;
}

/**
 * Starts a queue that processes large deliveries on a worker thread, round-robin between organizations. Events are returned as text that
 * needs no further parsing. Large values are moved as buffers.
 */
export function startNormalizeQueue(deps: NormalizeDeps): NormalizeQueue {
  const queue = createWorkerQueue<WorkerRequest, WorkerAnswer>({
    program: new URL("./normalize-worker.ts", import.meta.url),
    name: "large deliveries",
    maxCpuMs: MAX_CPU_MS,
    maxQueuedPerLane: MAX_QUEUED_PER_LANE,
    maxHeapMiB: MAX_HEAP_MIB,
    toSend: withOwnBody,
  });
  const pulledLimiter = createLimiter(MAX_PULLED);
  const ids = new WeakMap<RuleSet, number>();
  let lastId = 0;

  function idOf(rules: RuleSet): number {
    const known = ids.get(rules) ?? ++lastId;
    ids.set(rules, known);
    return known;
  }

  /** Returns the rules together with the generated code of their schemas. Compiles schemas that have no code yet. */
  async function createSentRules(rules: RuleSet): Promise<SentRules> {
    const { channel, config, definitions, topics, forms } = rules;
    const generated: SentRules["generated"][number][] = [];
    for (const { schema } of definitions) {
      const compiled =
        schema === undefined ? undefined : await deps.validatorFor(schema, channel.organizationId);
      generated.push(compiled?.generated);
    }
    return { channel, config, definitions, topics, forms, generated };
  }

  /** Runs the job with the rules that the worker thread has. If the thread does not have them, sends them and runs the job again. */
  async function runInWorker(
    kind: "normalize" | "explain",
    caller: JobOptions,
    [rules, delivery, only]: Parameters<Explainer>,
  ): Promise<WorkerAnswer | Exceeded> {
    const request = { kind, rulesId: idOf(rules), delivery, only };
    const first = await queue.run(request, caller);
    if (first.kind !== "missing") return first;
    const sent = createSentRules(rules);
    // If the caller gives up, this stops waiting for the compilation, which continues. Otherwise the delivery would stay in memory until
    // then.
    return queue.run({ ...request, rules: await unlessAbandoned(caller, sent) }, caller);
  }

  async function normalizeInWorker(caller: JobOptions, ...args: Parameters<Explainer>): Promise<Normalized> {
    const [rules, delivery, only] = args;
    const answer = await runInWorker("normalize", caller, args);
    if (answer.kind === "normalized") return withBuffers(answer.normalized);
    if (answer.kind === "exceeded") return createFailure(TOO_COSTLY, only);
    if (answer.kind === "unknownKind") return normalize(rules, delivery, deps, only);
    throw unexpected(answer);
  }

  /**
   * Normalizes a fetched delivery. A source can fetch more deliveries at once than the queue accepts. They wait here, because rejecting
   * them would force the source to reconnect.
   */
  async function normalizePulled(...args: Parameters<Explainer>): Promise<Normalized> {
    const lane = args[0].channel.organizationId;
    using _ = await pulledLimiter.acquire(1, { signal: NEVER_ABORTED, whose: lane });
    return await normalizeInWorker({ lane, mayExceedQueue: true }, ...args);
  }

  return {
    normalize(rules, delivery, only, maxWaitMs) {
      if (maxWaitMs === undefined) return normalizePulled(rules, delivery, only);
      const leaving = new AbortController();
      const caller = { lane: rules.channel.organizationId, signal: leaving.signal };
      return abortAfter(maxWaitMs, normalizeInWorker(caller, rules, delivery, only), leaving);
    },
    async explain(...args) {
      const [rules, delivery, only] = args;
      const answer = await runInWorker("explain", { lane: rules.channel.organizationId }, args);
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
        // The worker thread does not know a channel kind that exists only in this gateway, for example in a test. So it runs here.
        if (answer.kind === "unknownKind" && readLarge !== undefined) return ok(readLarge(request));
        throw unexpected(answer);
      },
    [Symbol.asyncDispose]: () => queue[Symbol.asyncDispose](),
  };
}

/**
 * Copies the body of a request and moves the copy to the worker thread. If it were sent directly, the larger buffer that contains it would
 * be copied too.
 */
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
  new Error(`the worker returned an unexpected answer: ${kind}`);
