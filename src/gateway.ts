import { createApp } from "./app.ts";
import { openRedis } from "./bus/connection/redis.ts";
import { createGroups } from "./bus/groups/groups.ts";
import { createEntryIndex } from "./bus/topics/entry-index.ts";
import { createTopics } from "./bus/topics/topics.ts";
import type { ChannelKinds, ChannelRuntime } from "./channels/kind.ts";
import { channelKinds as ownKinds } from "./channels/kinds.ts";
import { createHookLimits, limitedIngest } from "./channels/push/rate-limit.ts";
import { checkSettings, type SettingsDeps } from "./channels/settings.ts";
import { type Config, publicUrls } from "./config.ts";
import { bootstrap } from "./data/bootstrap.ts";
import { createCaptureSecret } from "./data/capture-secret.ts";
import { startChangeFeed } from "./data/changes.ts";
import { openDatabase } from "./data/database.ts";
import { createLiveChannels } from "./data/live-channels.ts";
import { migrate } from "./data/migrate.ts";
import { startGroupReconciler } from "./delivery/group-reconciler.ts";
import type { Handlers, HandlersTiming } from "./delivery/handlers.ts";
import { startHousekeeper } from "./delivery/housekeeper.ts";
import { startPauseDrainer } from "./delivery/pause-drainer.ts";
import type { ChannelKindName } from "./event/channel.ts";
import type { Ingest } from "./event/ingest.ts";
import { createCallerPath } from "./gateway/callers.ts";
import { createConnections } from "./gateway/connections.ts";
import { openDelivery } from "./gateway/delivery.ts";
import { createEventPath } from "./gateway/event-path.ts";
import { createFetchPinned } from "./gateway/fetch-pinned.ts";
import { greetingOf } from "./gateway/greeting.ts";
import { createHealthChecks } from "./gateway/health-checks.ts";
import { startListener } from "./gateway/listener.ts";
import { createMasterKeyWatch, openMasterKeyring } from "./gateway/master-keys.ts";
import { redisCliOf } from "./gateway/redis-cli.ts";
import { createSourceBus, type Sources, type SourcesTiming, startSources } from "./gateway/sources.ts";
import { openStores } from "./gateway/stores.ts";
import { checkDefinitions } from "./ingest/check-definitions.ts";
import { createClientAddressOf } from "./lib/client-address.ts";
import { startSchemaCompiler } from "./lib/json-schema/compiler.ts";
import { parseRedisAddresses } from "./lib/redis-address.ts";
import type { Log } from "./log.ts";
import { createMetrics } from "./metrics.ts";
import { createOutbound } from "./net/create-outbound.ts";
import { readPresets } from "./verify/presets.ts";

/** A running gateway. Disposal drains it: who is inside is answered, what was acknowledged is kept, its own servers end last. */
export interface Gateway extends AsyncDisposable {
  readonly port: number;
  /** For the person who started it. */
  readonly greeting: string;
}

/** What a new channel of the app `welcome` takes: anything. */
const WELCOME = {
  uid: "inbox",
  title: "Inbox",
  kind: "webhook",
  config: {},
  events: [{ type: "received" }],
} as const;

export interface GatewayDeps {
  readonly log: Log;
  readonly signal: AbortSignal;
  /** Default: those of `channels/kinds.ts`. */
  readonly channelKinds?: ChannelKinds;
  /** Of leases; what they leave out is as in production. */
  readonly sourcesTiming?: SourcesTiming;
  readonly handlersTiming?: Partial<HandlersTiming>;
}

/**
 * Builds the whole graph and opens the door. When `signal` aborts, a start that is under way ends, and `/readyz` says that the
 * end is near.
 *
 * @throws DataDirInUseError, RedisUnfitError, MigrationError, WrongMasterKeyError, or an Error that says what to do.
 */
export async function startGateway(
  config: Config,
  { log, signal, channelKinds = ownKinds, sourcesTiming, handlersTiming }: GatewayDeps,
): Promise<Gateway> {
  await using opening = new AsyncDisposableStack();
  const clock = Date.now;
  const metrics = createMetrics({ ofProcess: true });
  const presets = readPresets();
  let urls = { baseUrl: "", hooksUrl: "" };
  const has = (role: Config["roles"][number]): boolean => config.roles.includes(role);

  const stores = opening.use(await openStores(config, { log, signal }));
  const { db } = opening.use(openDatabase({ connection: stores.database }));
  await migrate({ connection: stores.database, log });
  const keyring = await openMasterKeyring(db, stores.keys, clock);
  const masterKey = createMasterKeyWatch(keyring, log);
  const redis = opening.use(
    await openRedis({
      url: stores.redisUrl,
      log,
      durability: config.durability,
      durabilityAsserted: config.durabilityAsserted,
      signal,
    }),
  );
  const schemas = opening.use(startSchemaCompiler());
  const groups = createGroups({ redis });
  const topics = createTopics({ redis });
  const entries = createEntryIndex({ redis });

  const outbound = opening.use(createOutbound(config));
  const feedStalenessMs = (): number => clock() - feed.lastReadAtMs();
  const path = createEventPath({
    redis,
    keyring,
    liveChannels: createLiveChannels({ db, keyring }),
    channelKinds,
    presets,
    schemas,
    hooksUrl: () => urls.hooksUrl,
    fetchPinned: createFetchPinned(outbound),
    captureSecret: createCaptureSecret({ db, keyring, nowMs: clock }),
    metrics,
    clock,
    feedStalenessMs,
    onAppended: (topic, ...sizes) => {
      housekeeper.noteAppended(topic, ...sizes);
      handlers?.noteAppended(topic);
    },
  });
  const clientAddressOf = createClientAddressOf(config.trustProxy);
  const callers = createCallerPath({ db, keyring, redis, clientAddressOf, clock, config });
  const settings: SettingsDeps = {
    channelKinds,
    presets,
    checkDefinitions: (source) => checkDefinitions(schemas, source, signal),
  };
  const firstStart = await bootstrap({
    db,
    keyring,
    clock,
    apiKey: config.apiKey,
    welcome: config.databaseUrl === undefined ? await welcomeChannel(settings) : undefined,
  });

  const groupReconciler = has("delivery")
    ? opening.use(startGroupReconciler({ db, redis, groups, clock, log }))
    : undefined;
  const housekeeper = opening.use(
    startHousekeeper({
      ...{ db, redis, groups, topics, quarantine: path.quarantine, clock, log },
      takesTurns: config.roles.some((role) => role !== "hooks"),
    }),
  );
  const pauseDrainer = opening.use(
    startPauseDrainer({ ...path, db, findLiveChannel: path.findByNumber, log }),
  );
  let sources: Sources | undefined;
  let handlers: Handlers | undefined;
  const feed = opening.use(
    await startChangeFeed({
      db,
      log,
      clock,
      onChange(change) {
        if (change.kind === "channel") path.rules.drop(Number(change.key));
        if (change.kind === "access") callers.forgetCallers();
        if (change.kind === "masterKey") masterKey.noteChange();
        groupReconciler?.noteChange(change);
        pauseDrainer.noteChange(change);
        sources?.noteChange(change);
        handlers?.noteChange(change);
      },
      onReset() {
        path.rules.clear();
        callers.forgetCallers();
        masterKey.noteChange();
        groupReconciler?.noteReset();
        sources?.noteReset();
        handlers?.noteReset();
      },
    }),
  );
  const stalenessSeconds = () => feedStalenessMs() / 1000;
  metrics.observe("inlet_changes_blind_seconds", "How long changes could not be read", stalenessSeconds);
  metrics.observe(
    "inlet_subscriptions_retention_at_risk",
    "Subscriptions that are about to lose unread events to retention; 0 on gateways that have not the turn to watch",
    housekeeper.atRisk,
  );
  metrics.observe("inlet_redis_memory_used_ratio", "Of maxmemory; 0 where it is not limited", () => {
    return redis.state().memoryUsedFraction ?? 0;
  });

  const limits = createHookLimits({ clientAddressOf, requestsPerSecond: config.hookRequestsPerSecond });
  const ingest = path.ingest as Ingest;
  const pushed = limitedIngest(ingest, limits);
  const connections = opening.use(createConnections({ db, keyring, outbound, clock, log }));
  const runtimes = new Map<ChannelKindName, ChannelRuntime>();
  for (const kind of channelKinds.values()) {
    runtimes.set(
      kind.kind,
      opening.use(await kind.start({ ingest: kind.addressed ? pushed : ingest, outbound, clock, log })),
    );
  }
  const { credentialsOf } = connections;
  const delivery = opening.use(
    openDelivery({
      ...{ db, keyring, redis, outbound, credentialsOf, metrics, clock, log },
      ...(handlersTiming && { timing: handlersTiming }),
    }),
  );
  if (has("delivery")) handlers = opening.use(delivery.start());
  const sourceBus = createSourceBus(redis);
  if (has("sources")) {
    const { pollConcurrency, pollsPerOrigin, pollsPerOrganization } = config;
    sources = opening.use(
      startSources({
        ...{ db, redis, bus: sourceBus, topics, path, channelKinds, runtimes, metrics, clock, log },
        feedStalenessMs,
        credentialsOf,
        polls: {
          concurrency: pollConcurrency,
          limits: { perOrigin: pollsPerOrigin, perOrganization: pollsPerOrganization },
        },
        stopping: signal,
        ...(sourcesTiming && { timing: sourcesTiming }),
      }),
    );
  }

  const draining = new AbortController();
  const fetch = createApp({
    clock,
    health: {
      checks: createHealthChecks({ stores, redis, masterKey, sources, feedStalenessMs, stopping: signal }),
      metrics,
      metricsToken: config.metricsToken,
    },
    hooks: has("hooks") ? { findChannel: path.rules.find, runtimes, limits, metrics, clock, log } : undefined,
    api: has("api")
      ? {
          ...settings,
          ...callers,
          db,
          keyring,
          redis,
          groups,
          topics,
          entries,
          quarantine: path.quarantine,
          redrive: path.redrive,
          explain: path.explain,
          findLiveChannel: path.findByNumber,
          ...sourceBus,
          runtimes,
          hooksUrl: () => urls.hooksUrl,
          sipProviders: config.sipProviders,
          schemas,
          onDeleted: housekeeper.settleNow,
          outbound,
          credentialsOf,
          sendAgain: delivery.sendAgain,
          issuerFetch: connections.issuerFetch,
          baseUrl: () => urls.baseUrl,
          readChanges: feed.readNow,
          metrics,
          stopping: AbortSignal.any([signal, draining.signal]),
          clock,
          log,
        }
      : undefined,
  });
  const listener = opening.use(await startListener({ fetch, host: config.host, port: config.port }));
  // Before the listener waits for its last answers: those that have no end of their own.
  opening.defer(() => draining.abort());
  urls = publicUrls(config, listener.port);
  log.info(
    { port: listener.port, roles: config.roles, durability: redis.state().durability, ...urls },
    "gateway ready",
  );

  const owned = opening.move();
  return {
    port: listener.port,
    greeting: greetingOf(firstStart, {
      ...urls,
      redisCli: redisCliOf(parseRedisAddresses(stores.redisUrl)[0], redis.state()),
    }),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function welcomeChannel(deps: SettingsDeps) {
  const checked = await checkSettings(deps, WELCOME);
  if (!checked.ok) throw new Error("the channel of the app `welcome` is not accepted");
  return { ...checked.value, uid: WELCOME.uid, title: WELCOME.title };
}
