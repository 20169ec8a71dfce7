import type { RedisBus } from "../../src/bus/connection/redis.ts";
import { createGroups, type Groups } from "../../src/bus/groups/groups.ts";
import { createGroupProgressReader } from "../../src/bus/groups/readings.ts";
import { type JobQueue, openJobQueue } from "../../src/bus/jobs/job-queue.ts";
import { createEntryIndex, type EntryIndex } from "../../src/bus/topics/entry-index.ts";
import { createTopics, type Topics } from "../../src/bus/topics/topics.ts";
import type { ChannelKind, ChannelRuntime } from "../../src/channels/kind.ts";
import { channelKinds as ownKinds } from "../../src/channels/kinds.ts";
import { createCaptureSecret } from "../../src/data/channels/capture-secret.ts";
import { createStoredChannels } from "../../src/data/channels/stored-channels.ts";
import type { ChannelKindName } from "../../src/event/channel.ts";
import type { PendingRetry } from "../../src/event/handler.ts";
import type { IngestResult } from "../../src/event/ingest.ts";
import type { Outcome } from "../../src/event/outcome.ts";
import { createEventPath, type EventPath } from "../../src/gateway/event-path.ts";
import { createSourceBus } from "../../src/gateway/sources.ts";
import { createRetryQueue } from "../../src/handlers/retry-queue.ts";
import { createBodyBudget } from "../../src/ingest/body/body-budget.ts";
import { createReceive } from "../../src/ingest/receive.ts";
import { UnavailableError } from "../../src/lib/errors.ts";
import { createLog } from "../../src/log.ts";
import { createMetrics, type Metrics } from "../../src/metrics.ts";
import { createOutbound } from "../../src/net/create-outbound.ts";
import type { FetchPinned } from "../../src/verify/keys/key-cache.ts";
import type { Presets } from "../../src/verify/presets.ts";
import { LONG_WRITE_TIMEOUT, openTestRedis } from "../bus/support.ts";
import { createTestExchange, createTestLimits, requireIngested } from "../ingest/receive-support.ts";
import { createTestApi, type TestApi } from "./api.ts";
import { createTestChanges } from "./changes.ts";
import { testLimitsOf } from "./limits.ts";
import { sharedPresets } from "./presets.ts";
import { readHere } from "./read-here.ts";
import { sharedSchemas } from "./schemas.ts";
import { createTestRedis, type TestRedis } from "./test-redis.ts";
import { CEILING_MS } from "./until.ts";

/** The API and the ingestion path over their own database and Redis, without a listener. */
export interface TestSpine extends AsyncDisposable {
  readonly api: TestApi;
  readonly server: TestRedis;
  readonly redis: RedisBus;
  readonly groups: Groups;
  readonly topics: Topics;
  readonly entries: EntryIndex;
  readonly path: EventPath;
  /** Deliveries to handlers. The queue has no worker, so they stay in it. */
  readonly queue: JobQueue<PendingRetry>;
  readonly metrics: Metrics;
  /** Installs an app with these channels. Returns the app as the API does. */
  // biome-ignore lint/suspicious/noExplicitAny: an answer of the API
  readonly install: (...channels: object[]) => Promise<any>;
  readonly deliver: (
    channelId: string,
    body: unknown,
    headers?: Record<string, string>,
  ) => Promise<IngestResult>;
  /** Sends a delivery that must be accepted. */
  readonly send: (channelId: string, body: unknown, headers?: Record<string, string>) => Promise<Outcome>;
  /** Organizations whose topics exceed their storage limit. */
  readonly overLimit: Set<string>;
  /** Called after a deletion. */
  onDeleted: () => Promise<void>;
}

/** Start dependencies of channel kinds. */
const kindDeps = {
  clock: Date.now,
  log: createLog({ level: "silent" }),
};

export interface SpineOptions {
  /** Disposed with the spine. Default: a database of the run's Redis. Tests that stop or restart Redis pass their own server. */
  readonly server?: TestRedis;
  /** Additional channel kinds. A kind with a built-in name replaces that kind. */
  readonly extraKinds?: readonly ChannelKind[];
  /** Default: all known presets. */
  readonly presets?: Presets;
  /** Default: every fetch fails. */
  readonly fetchPinned?: FetchPinned;
  /** Private networks to which the API accepts handlers. Default: none. */
  readonly allowNetworks?: readonly string[];
}

const fetchNothing: FetchPinned = async () => {
  throw new UnavailableError("this test allows no fetches");
};

export async function startTestSpine(options: SpineOptions = {}): Promise<TestSpine> {
  const { extraKinds = [] } = options;
  const overLimit = new Set<string>();
  const channelKinds = new Map([...ownKinds, ...extraKinds.map((kind) => [kind.kind, kind] as const)]);
  await using starting = new AsyncDisposableStack();
  const server = starting.use(options.server ?? (await createTestRedis()));
  const redis = starting.use(await openTestRedis(server.url, LONG_WRITE_TIMEOUT));
  const schemas = sharedSchemas();
  const groups = createGroups({ redis });
  const topics = createTopics({ redis });
  const entries = createEntryIndex({ redis });
  const queue = starting.use(
    openJobQueue<PendingRetry>({ redis, name: "handlers", log: createLog({ level: "silent" }) }),
  );
  const { sendAgain, findRetry } = createRetryQueue(queue);
  const readings = createGroupProgressReader({ redis, groups });
  const hooks = { onDeleted: async () => {}, overLimit };
  const runtimes = new Map<ChannelKindName, ChannelRuntime>();
  const outbound = starting.use(createOutbound({ allowNetworks: [] }));
  for (const kind of channelKinds.values()) {
    const runtime = await kind.start({ ...kindDeps, outbound, readInWorker: readHere(kind) });
    runtimes.set(kind.kind, starting.use(runtime));
  }
  const metrics = createMetrics();
  let made: EventPath | undefined;
  starting.defer(async () => made?.[Symbol.asyncDispose]());
  const api = starting.use(
    await createTestApi({
      extraKinds,
      ...(options.presets ? { presets: options.presets } : {}),
      allowNetworks: options.allowNetworks ?? [],
      async openBus({ db }, keyring) {
        made = createEventPath({
          limitsOf: testLimitsOf,
          isOverLimit: (organizationId) => overLimit.has(organizationId),
          redis,
          keyring,
          channelKinds,
          schemas,
          presets: options.presets ?? sharedPresets(),
          baseUrl: "https://inlet.example/v1",
          hooksUrl: "https://hooks.example",
          fetchPinned: options.fetchPinned ?? fetchNothing,
          captureSecret: createCaptureSecret({ db, keyring, nowMs: Date.now }),
          confirmRegistration: async () => {},
          reactToSignals: async () => {},
          storedChannels: createStoredChannels({ db, keyring }),
          metrics,
          log: createLog({ level: "silent" }),
          clock: Date.now,
          redisClock: { now: Date.now, aheadMs: () => 0 },
          changes: createTestChanges(),
          onAppended: () => {},
          timeoutMs: CEILING_MS,
        });
        const { quarantine, deliveryRecords, redrive, redriveHeld } = made;
        const { publishTest, testRouting, explain, explainRouting, findCompiledChannel } = made;
        const onDeleted = () => hooks.onDeleted();
        return {
          redis,
          groups,
          topics,
          entries,
          quarantine,
          deliveryRecords,
          redrive,
          redriveHeld,
          explain,
          explainRouting,
          publishTest,
          testRouting,
          findCompiledChannel,
          onDeleted,
          ...createSourceBus(redis),
          wakes: made.wakes,
          runtimes,
          sendAgain,
          findRetry,
          readings,
        };
      },
    }),
  );
  if (!made) throw new Error("the API did not open a bus");
  const path = made;

  const deliver: TestSpine["deliver"] = async (channelId, body, headers = {}) => {
    // Acts as if the change feed had reported each change.
    path.rules.clear();
    const channel = await path.rules.find(channelId);
    if (!channel) throw new Error("there is no such channel");
    const exchange = createTestExchange({
      target: `/hooks/${channelId}`,
      headers: { "content-type": "application/json", ...headers },
      body: Buffer.isBuffer(body)
        ? body
        : Buffer.from(typeof body === "string" ? body : JSON.stringify(body)),
    });
    return new Promise((resolve, reject) => {
      const receive = createReceive({
        ...path.receiving,
        findChannel: () => channel,
        runtimes,
        limits: createTestLimits(),
        bodies: createBodyBudget(),
        conclude(arrival, result) {
          path.receiving.conclude(arrival, result);
          const ingested = requireIngested(result, reject);
          if (ingested !== undefined) resolve(ingested);
        },
      });
      receive(channelId, exchange);
    });
  };

  const owned = starting.move();
  return Object.assign(hooks, {
    api,
    server,
    redis,
    groups,
    topics,
    entries,
    path,
    queue,
    metrics,
    deliver,
    async install(...channels: object[]) {
      const blueprint = await api.call("POST", "/blueprints", { title: "test", channels });
      const installed = await api.call("POST", "/apps/install", { blueprintId: blueprint.body.id });
      if (installed.status !== 200) throw new Error(JSON.stringify([blueprint.body, installed.body]));
      return installed.body;
    },
    async send(channelId: string, body: unknown, headers?: Record<string, string>) {
      const result = await deliver(channelId, body, headers);
      if (result.kind !== "accepted") throw new Error(JSON.stringify(result));
      return result.outcome;
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  });
}
