import { createDeliveryRecords } from "../bus/deliveries/delivery-records.ts";
import { createPauses } from "../bus/groups/pauses.ts";
import { openJobQueue } from "../bus/jobs/job-queue.ts";
import { createFindKnownIds } from "../bus/publish/known-ids.ts";
import { type Appended, createPublish } from "../bus/publish/publish.ts";
import { createRouteMemory } from "../bus/publish/route-memory.ts";
import { createQuarantineStore } from "../bus/quarantine/quarantine.ts";
import { createWakes } from "../bus/sources/wakes.ts";
import { createTopics } from "../bus/topics/topics.ts";
import type { ReconciledChannel } from "../channels/pull/open-run.ts";
import type { PollJob } from "../channels/pull/polls/poll-target.ts";
import type { Limits } from "../data/accounts/limits.ts";
import type { ChangeFeed } from "../data/changes.ts";
import type { StoredChannel, StoredChannels } from "../data/channels/stored-channels.ts";
import { type AnswerHandshakeDeps, createAnswerHandshake } from "../ingest/answer-handshake.ts";
import { createCompareReconciled } from "../ingest/compare-reconciled.ts";
import { type CompiledChannel, createCompileChannel } from "../ingest/compile-channel.ts";
import { createConclude } from "../ingest/conclude.ts";
import { createDeliveryRecorder } from "../ingest/delivery-recorder.ts";
import { createDeliverySpans } from "../ingest/delivery-spans.ts";
import { createDrainPaused } from "../ingest/drain-paused.ts";
import { createExplain } from "../ingest/explain.ts";
import { createGather } from "../ingest/gather.ts";
import {
  createExplainer,
  createItemRouter,
  createNormalizer,
  createThreadShares,
} from "../ingest/normalizer.ts";
import { createPauseBuffer } from "../ingest/pause-buffer.ts";
import { createReactFirst } from "../ingest/react-first.ts";
import { createIsForgotten, hashIdRules } from "../ingest/reconciled.ts";
import { openRouting } from "../ingest/route/open-routing.ts";
import { createRulesCache } from "../ingest/rules-cache.ts";
import { createValidatorFor } from "../ingest/validators.ts";
import { createWakeFirst } from "../ingest/wake.ts";
import { startNormalizeQueue } from "../ingest/worker/normalize-queue.ts";
import { createWriter, type WriterDeps } from "../ingest/write.ts";
import { BudgetError, UnavailableError } from "../lib/errors.ts";
import { createId } from "../lib/ids.ts";
import { createChannelIdCheck } from "../lib/secrets/channel-id.ts";
import type { Budgets } from "../limits/budgets.ts";
import type { NormalizeDeps } from "../normalize/normalize.ts";
import { createPathCache } from "../normalize/paths/jsonpath.ts";
import type { createProviderMessages } from "../registrations/provider-messages.ts";
import type { Tracing } from "../tracing/tracing.ts";
import { createKeyCaches, type FetchPinned } from "../verify/keys/key-cache.ts";
import type { Foundation } from "./foundation.ts";

export interface EventPathDeps
  extends Pick<
    Foundation,
    "redis" | "keyring" | "channelKinds" | "presets" | "schemas" | "metrics" | "clock" | "redisClock" | "log"
  > {
  /** Budgets that all processes of this machine share. */
  readonly budgets?: Budgets | undefined;
  readonly storedChannels: StoredChannels;
  readonly tracing?: Tracing | undefined;
  readonly changes: Pick<ChangeFeed, "subscribe" | "stalenessMs">;
  readonly baseUrl: string;
  /** Base URL of all channel addresses. `/hooks/{channelId}` is appended to it. */
  readonly hooksUrl: string;
  readonly fetchPinned: FetchPinned;
  readonly captureSecret: AnswerHandshakeDeps["captureSecret"];
  readonly reactToSignals: ReturnType<typeof createProviderMessages>["reactToSignals"];
  readonly confirmRegistration: AnswerHandshakeDeps["confirmRegistration"];
  readonly onAppended: (...appended: Appended) => void;
  readonly limitsOf: (organizationId: string) => Limits;
  readonly isOverLimit: (organizationId: string) => boolean;
  /** Maximum time for a channel lookup and for a schema validation, in ms. After that, the sender receives 503. */
  readonly timeoutMs?: number | undefined;
}

export type EventPath = ReturnType<typeof createEventPath>;

/** Maximum number of compiled paths in the cache. All channels share it, and each path takes about 1.2 kB. */
const MAX_PATHS = 10_000;

/** Creates the functions that process a verified delivery until its events are written to Redis. */
export function createEventPath(deps: EventPathDeps) {
  const { redis, keyring, storedChannels, fetchPinned, metrics, clock, changes, onAppended } = deps;
  const quarantineBytesOf = (id: string) => deps.limitsOf(id).quarantineBytes ?? Number.MAX_SAFE_INTEGER;
  const compileChannel = createCompileChannel({
    ...deps,
    keysOf: createKeyCaches(fetchPinned, (id) => deps.limitsOf(id).keyFetches, deps.budgets),
    pathsOf: createPathCache(MAX_PATHS),
    onShadowed: (kind, reason) => metrics.shadowed.add(kind, reason),
  });
  const publish = createPublish({
    redis,
    budgets: deps.budgets,
    onAppended,
    onCall: metrics.publishSeconds.observe,
    getQuarantineLimitBytes: quarantineBytesOf,
    newQuarantineId: () => createId("qr", clock()),
  });
  const quarantine = createQuarantineStore({ redis, publish, getLimitBytes: quarantineBytesOf });
  const pauses = createPauses({ redis });
  const rules = createRulesCache({
    isChannelId: createChannelIdCheck(keyring.channelIdKey),
    load: async (channelId) => {
      const found = await storedChannels.findById(channelId);
      return found && { channel: compileChannel(found.channel), leftMs: found.leftMs };
    },
    feedStalenessMs: changes.stalenessMs,
    lookUpTimeoutMs: deps.timeoutMs,
  });
  changes.subscribe({
    onChange: ({ kind, key }) => void (kind === "channel" && rules.drop(Number(key))),
    onReset: rules.clear,
  });
  const normalizing: NormalizeDeps = {
    validatorFor: createValidatorFor(deps.schemas),
    newEventId: () => createId("evt", clock()),
  };
  const normalizeQueue = startNormalizeQueue({
    ...normalizing,
    program: new URL("./normalize-thread.ts", import.meta.url),
  });
  const shares = createThreadShares();
  const explainEach = createExplainer(normalizing, normalizeQueue.explain, shares);
  const deliveryRecords = createDeliveryRecords({ redis });
  const recorder = createDeliveryRecorder({
    records: deliveryRecords,
    explain: createExplain({ explainEach, findKnownIds: undefined }),
    isOverLimit: deps.isOverLimit,
    metrics,
    clock,
    log: deps.log,
  });
  const spans = deps.tracing && createDeliverySpans(deps.tracing);
  const { conclude, ...concluding } = createConclude({ metrics, recorder, spans, clock, log: deps.log });
  const normalize = createNormalizer(normalizing, normalizeQueue.normalize, shares);
  const shared = {
    ...concluding,
    spans,
    publish,
    quarantine,
    normalize,
    maxCheckMs: deps.timeoutMs,
  } satisfies WriterDeps;
  const { publishNormalized, ...writer } = createWriter(shared);
  const gatherFetched = createGather({ ...shared, publishNormalized });
  const { routeTargets } = storedChannels;
  const newDeliveryId = () => createId("dl", clock());
  const routing = openRouting({
    ...shared,
    ...concluding,
    quarantine,
    publishNormalized,
    publishTest: writer.publishTest,
    newDeliveryId,
    routeItems: createItemRouter(normalizeQueue.route, shares),
    targets: routeTargets,
    findChannel: rules.find,
    memory: createRouteMemory({ redis }),
    reactFirst: (...args) => receiving.reactFirst(...args),
    bufferWhilePaused: (...args) => receiving.bufferWhilePaused(...args),
    metrics,
    clock,
  });
  const drainPaused = createDrainPaused({
    ...shared,
    ...concluding,
    quarantine,
    redrive: writer.redrive,
    route: routing.route,
  });
  const findKnownIds = createFindKnownIds({ redis });
  const compare = createCompareReconciled({ normalize, findKnownIds, topics: createTopics({ redis }) });
  const openReconciled = (stored: StoredChannel): ReconciledChannel<CompiledChannel> => {
    const channel = compileChannel(stored);
    return {
      channel,
      idRules: hashIdRules(stored),
      // The events of a pause are not known before they are published.
      isPaused: channel.state === "paused" || channel.pause !== undefined,
      isForgotten: createIsForgotten(channel, stored.dedupeChange),
      compare: (deliveries, options) => compare(channel, deliveries, options),
    };
  };
  const { aheadMs } = deps.redisClock;
  /** Every gateway opens the queue, because a gateway that receives webhooks may poll no sources itself. */
  const pollQueue = openJobQueue<PollJob>({ redis, name: "polls", aheadMs, log: deps.log });
  const wakes = createWakes({ redis, queue: pollQueue });
  /** Dependencies of `createReceive` that every gateway creates, whether or not it receives webhooks. */
  const receiving = {
    findChannel: rules.find,
    quarantine,
    normalize,
    publishNormalized,
    route: routing.route,
    conclude,
    spans,
    clock,
    maxCheckMs: deps.timeoutMs,
    reactFirst: createReactFirst({
      wakeFirst: createWakeFirst({ wakes, metrics, clock, log: deps.log }),
      reactToSignals: (channel, signals) => deps.reactToSignals(channel, signals, wakes),
    }),
    bufferWhilePaused: createPauseBuffer({ quarantine, pauses, drainPaused, newDeliveryId }),
    answerHandshake: createAnswerHandshake({
      confirmRegistration: deps.confirmRegistration,
      async captureSecret(channel, secret) {
        const isKept = await deps.captureSecret(channel, secret);
        // This gateway must use the change immediately. Other gateways are notified by the change feed.
        rules.drop(channel.number);
        return isKept;
      },
      async visit(url, options) {
        await fetchPinned(url, options).catch((cause) => {
          throw new UnavailableError("the confirmation URL of a handshake could not be requested", { cause });
        });
      },
    }),
  };
  return {
    rules,
    publish,
    quarantine,
    deliveryRecords,
    recorder,
    receiving,
    pollQueue,
    wakes,
    ...writer,
    /** Rejects fetched deliveries while the organization exceeds its storage limit, so that its sources wait. */
    gatherFetched: ((channel, deliveries) =>
      gatherFetched(channel, deliveries).map(({ count, items, write }) => ({
        count,
        items,
        write: (options) =>
          deps.isOverLimit(channel.identity.organizationId) ? rejectOverLimit() : write(options),
      }))) satisfies typeof gatherFetched,
    explain: createExplain({ explainEach, findKnownIds }),
    pauses,
    drainPaused,
    routeTargets,
    findInstall: routing.findInstall,
    redriveHeld: routing.redriveHeld,
    explainRouting: routing.explainRouting,
    testRouting: routing.testRouting,
    bufferWhilePaused: receiving.bufferWhilePaused,
    readInWorker: normalizeQueue.readFor,
    /**
     * Returns the compiled channel with this internal channel id. Returns `undefined` if the channel was deleted.
     *
     * @throws UnavailableError
     */
    async findCompiledChannel(channelNumber: number): Promise<CompiledChannel | undefined> {
      const stored = await storedChannels.findByNumber(channelNumber);
      return stored && compileChannel(stored);
    },
    /**
     * Returns the source with this internal channel id. Returns `undefined` if the channel must not fetch events.
     *
     * @throws UnavailableError
     */
    async findSource(channelNumber: number) {
      const source = await storedChannels.findSource(channelNumber);
      if (source === undefined) return undefined;
      const reconciled = source.reconciled && openReconciled(source.reconciled);
      return { ...source, channel: compileChannel(source.channel), reconciled };
    },
    async [Symbol.asyncDispose]() {
      await recorder[Symbol.asyncDispose]();
      await normalizeQueue[Symbol.asyncDispose]();
      await pollQueue[Symbol.asyncDispose]();
    },
  };
}

const rejectOverLimit = () =>
  Promise.reject(
    new BudgetError("topics_full", "the organization has reached its topic storage limit", {
      retryAfterSeconds: 30,
    }),
  );
