import type { ChannelKind, ReadInWorker } from "../channels/kind.ts";
import type { Explainer, Normalizer } from "../ingest/normalizer.ts";
import { createLimiter } from "../lib/limiter.ts";
import { err, ok } from "../lib/result.ts";
import { unlessAborted } from "../lib/wait.ts";
import { type Asker, createWorkerQueue, type Exceeded } from "../lib/worker-queue.ts";
import type { RuleSet } from "../normalize/compile.ts";
import { explainEach } from "../normalize/explain.ts";
import { invalidBody } from "../normalize/fault.ts";
import {
  abandonedAfter,
  failed,
  type NormalizeDeps,
  type Normalized,
  normalize,
} from "../normalize/normalize.ts";
import { withBuffers } from "./large-values.ts";
import type { SentRules, WorkerAnswer, WorkerRequest } from "./normalize-worker.ts";

/** Of one delivery: less than its sender waits, so that one that takes more is quarantined instead of sent again for ever. */
const MAX_CPU_MS = 3_000;
/** Their bodies wait in memory. */
const MAX_QUEUED_PER_LANE = 100;
/** Of all lanes, besides: deliveries that nobody has to be answered for. The others of their source wait outside. */
const MAX_PULLED = 50;
const MAX_HEAP_MIB = 1_024;

export interface NormalizeQueue extends AsyncDisposable {
  readonly normalize: Normalizer;
  readonly explain: Explainer;
  /** For a kind's own reading of what it fetches. */
  readonly readFor: (kind: Pick<ChannelKind, "kind" | "readLarge">) => ReadInWorker;
}

/**
 * Reads large deliveries in a thread of its own, in which organizations take turns. Events come back as
 * text, to be parsed by nobody, with large values as bytes that are moved.
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

  /** The code of its schemas, compiled where they are not yet. */
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

  /** By rules and code that the worker has, or is sent now. */
  async function runInWorker(
    kind: "normalize" | "explain",
    asker: Asker,
    [rules, delivery, only]: Parameters<Explainer>,
  ): Promise<WorkerAnswer | Exceeded> {
    const request = { kind, rulesId: idOf(rules), delivery, only };
    const first = await queue.run(request, asker);
    if (first.kind !== "missing") return first;
    const sent = createSentRules(rules);
    // A compilation that goes on alone would hold the delivery for as long.
    return queue.run({ ...request, rules: await unlessGone(asker, sent) }, asker);
  }

  async function normalizeThere(asker: Asker, ...asked: Parameters<Explainer>): Promise<Normalized> {
    const [rules, delivery, only] = asked;
    const answer = await runInWorker("normalize", asker, asked);
    if (answer.kind === "normalized") return withBuffers(answer.normalized);
    if (answer.kind === "exceeded") return failed(TOO_COSTLY, only);
    if (answer.kind === "unknownKind") return normalize(rules, delivery, deps, only);
    throw unexpected(answer);
  }

  /** A source brings more at once than a lane holds, and is not refused for it as a sender is: it would have to connect anew. */
  async function normalizePulled(...asked: Parameters<Explainer>): Promise<Normalized> {
    const lane = asked[0].channel.organizationId;
    using _ = await pulledLimiter.acquire(1, { signal: NEVER_ABORTED, whose: lane });
    return await normalizeThere({ lane, isUnhurried: true }, ...asked);
  }

  return {
    normalize(rules, delivery, only, maxWaitMs) {
      if (maxWaitMs === undefined) return normalizePulled(rules, delivery, only);
      const leaving = new AbortController();
      const asker = { lane: rules.channel.organizationId, signal: leaving.signal };
      return abandonedAfter(maxWaitMs, normalizeThere(asker, rules, delivery, only), leaving);
    },
    async explain(...asked) {
      const [rules, delivery, only] = asked;
      const answer = await runInWorker("explain", { lane: rules.channel.organizationId }, asked);
      if (answer.kind === "explained") return answer.explained;
      if (answer.kind === "exceeded") return failed(TOO_COSTLY, only);
      if (answer.kind === "unknownKind") return explainEach(rules, delivery, deps, only);
      throw unexpected(answer);
    },
    readFor:
      ({ kind: channelKind, readLarge }) =>
      async (request, lane) => {
        const answer = await queue.run({ kind: "read", channelKind, request }, { lane });
        if (answer.kind === "exceeded") return err(TOO_COSTLY);
        if (answer.kind === "read") return ok(answer.read);
        // A kind that was added to the gateway only.
        if (answer.kind === "unknownKind" && readLarge !== undefined) return ok(readLarge(request));
        throw unexpected(answer);
      },
    [Symbol.asyncDispose]: () => queue[Symbol.asyncDispose](),
  };
}

/**
 * With a copy of the body's own bytes, which is moved: sent as it is, it would be copied twice, here and there, with all the memory that it
 * is a part of.
 */
function withOwnBody(request: WorkerRequest): readonly [WorkerRequest, readonly ArrayBuffer[]] {
  if (request.kind === "read") return [request, []];
  const { delivery } = request;
  const body = Buffer.allocUnsafeSlow(delivery.body.length);
  delivery.body.copy(body);
  return [{ ...request, delivery: { ...delivery, body } }, [body.buffer]];
}

const unlessGone = <T>({ signal }: Asker, work: Promise<T>): Promise<T> =>
  signal ? unlessAborted(signal, work) : work;

const NEVER_ABORTED = new AbortController().signal;

const TOO_COSTLY = invalidBody("the delivery takes too much time or memory to be read");

const unexpected = ({ kind }: WorkerAnswer): Error => new Error(`the worker answered ${kind}`);
