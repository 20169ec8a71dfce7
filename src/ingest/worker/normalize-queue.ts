import type { ChannelKindName } from "../../event/channel.ts";
import { createLimiter } from "../../lib/limiter.ts";
import { err, ok, type Result } from "../../lib/result.ts";
import { unlessAborted } from "../../lib/wait.ts";
import { createWorkerQueue, type Exceeded, type JobOptions } from "../../lib/worker-queue.ts";
import type { RuleSet } from "../../normalize/compile.ts";
import { explainEach } from "../../normalize/explain.ts";
import { type Fault, invalidBody } from "../../normalize/fault.ts";
import {
  abortAfter,
  createFailure,
  type NormalizeDeps,
  type Normalized,
  normalize,
} from "../../normalize/normalize.ts";
import type { Explainer, Normalizer } from "../normalizer.ts";
import { withBuffers } from "./large-values.ts";
import type { SentRules, WorkerAnswer, WorkerKind, WorkerRequest } from "./normalize-worker.ts";

/**
 * CPU time limit of one delivery, in milliseconds. It is shorter than the timeouts of senders, so that a costly delivery is quarantined
 * instead of timing out and being retried forever.
 */
const MAX_CPU_MS = 3_000;
/** Maximum number of queued deliveries per organization. Their bodies stay in memory while they wait. */
const MAX_QUEUED_PER_LANE = 100;
/**
 * Maximum number of fetched deliveries in the queue, across all organizations. Further fetched deliveries wait before the queue, which is
 * safe because no sender waits for their responses.
 */
const MAX_PULLED = 50;
const MAX_HEAP_MIB = 1_024;

export interface NormalizeQueueDeps extends NormalizeDeps {
  /** Program of the worker thread. It calls `serveNormalizeJobs` with the channel kinds. */
  readonly program: URL;
}

export interface NormalizeQueue extends AsyncDisposable {
  readonly normalize: Normalizer;
  readonly explain: Explainer;
  /** Returns a function that runs the `readLarge` of this channel kind. Its parameter `lane` is the id of the organization. */
  readonly readFor: (
    kind: Pick<WorkerKind, "readLarge"> & { readonly kind: ChannelKindName },
  ) => (request: unknown, lane: string) => Promise<Result<unknown, Fault>>;
}

/**
 * Processes large deliveries on a worker thread, round-robin between organizations. The thread returns events as text that needs no further
 * parsing, and transfers large values as buffers.
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
  const pulledLimiter = createLimiter(MAX_PULLED);
  const ids = new WeakMap<RuleSet, number>();
  let lastId = 0;

  function idOf(rules: RuleSet): number {
    const known = ids.get(rules) ?? ++lastId;
    ids.set(rules, known);
    return known;
  }

  /** Adds the generated code of all schemas to the rules. Schemas without generated code are compiled first. */
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

  /** Runs a job with the rules that the worker thread has cached. If they are missing there, sends them and runs the job again. */
  async function runInWorker(
    kind: "normalize" | "explain",
    caller: JobOptions,
    [rules, delivery, only]: Parameters<Explainer>,
  ): Promise<WorkerAnswer | Exceeded> {
    const request = { kind, rulesId: idOf(rules), delivery, only };
    const first = await queue.run(request, caller);
    if (first.kind !== "missing") return first;
    const sent = createSentRules(rules);
    // When the caller gives up, stop waiting for the compilation so that the delivery can be freed. The compilation itself continues.
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
   * Normalizes a fetched delivery. A source may fetch more deliveries than the queue accepts, so they wait here: a rejection would force
   * the source to reconnect.
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
        // The worker thread does not know channel kinds that tests add to this gateway, so their `readLarge` runs on this thread.
        if (answer.kind === "unknownKind" && readLarge !== undefined) return ok(readLarge(request));
        throw unexpected(answer);
      },
    [Symbol.asyncDispose]: () => queue[Symbol.asyncDispose](),
  };
}

/**
 * Copies the body so that its buffer can be transferred. Without the copy, sending a body would clone the whole larger buffer behind it.
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
  new Error(`the worker thread sent an unexpected reply: ${kind}`);
