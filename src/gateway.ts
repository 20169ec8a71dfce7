import { createApp } from "./app.ts";
import { createGroups } from "./bus/groups/groups.ts";
import { createGroupProgressReader } from "./bus/groups/readings.ts";
import { startOverLimit } from "./bus/limits/over-limit.ts";
import { createAppendedListeners } from "./bus/publish/publish.ts";
import { createEntryIndex } from "./bus/topics/entry-index.ts";
import { createTopics } from "./bus/topics/topics.ts";
import type { CheckChannelDeps } from "./channels/check-channel.ts";
import type { ChannelKinds, ChannelRuntime } from "./channels/kind.ts";
import { channelKinds as ownKinds } from "./channels/kinds.ts";
import { publicUrls } from "./config/public-urls.ts";
import type { Config, Role } from "./config/schema.ts";
import { startRejectionCounts } from "./data/accounts/rejections.ts";
import { bootstrap } from "./data/bootstrap.ts";
import { createCaptureSecret } from "./data/channels/capture-secret.ts";
import { createStoredChannels } from "./data/channels/stored-channels.ts";
import type { ChannelKindName } from "./event/channel.ts";
import { createCallerPath } from "./gateway/callers.ts";
import { createConnections } from "./gateway/connections.ts";
import { createEventPath } from "./gateway/event-path.ts";
import { formatRedisCli, greet, type Print } from "./gateway/greeting.ts";
import { openHandlers } from "./gateway/handlers.ts";
import { createHealthChecks, observeGateway } from "./gateway/health.ts";
import { startListener } from "./gateway/listener.ts";
import type { Machine } from "./gateway/machine.ts";
import { startMetricsListener } from "./gateway/metrics-listener.ts";
import { openFoundation } from "./gateway/open-foundation.ts";
import { startProblems } from "./gateway/problems.ts";
import { createSourceBus, type SourcesTiming, startSources } from "./gateway/sources.ts";
import { claimDataDir } from "./gateway/stores.ts";
import { createWelcomeChannel } from "./gateway/welcome.ts";
import type { HandlersTiming } from "./handlers/handlers.ts";
import { consoleSignIn } from "./http/console.ts";
import { type HealthCheck, readHealth } from "./http/health.ts";
import { createInvalidRequestReport } from "./http/invalid-requests.ts";
import { createStartingApp } from "./http/starting-app.ts";
import { createBodyBudget } from "./ingest/body/body-budget.ts";
import { checkDefinitions } from "./ingest/check-definitions.ts";
import { createHookLimits } from "./ingest/hook-limits.ts";
import { createReceive } from "./ingest/receive.ts";
import { createClientAddressOf } from "./lib/addresses/client-address.ts";
import { parseRedisAddresses } from "./lib/addresses/redis-address.ts";
import type { Log } from "./log.ts";
import { startConfigCheck } from "./maintenance/config-check.ts";
import { startDrainers } from "./maintenance/drainers.ts";
import { startGroupReconciler } from "./maintenance/group-reconciler.ts";
import { type HousekeeperTiming, startHousekeeper } from "./maintenance/housekeeper.ts";
import type { ProblemTiming } from "./maintenance/problems/problem-watch.ts";
import { createMetrics } from "./metrics.ts";
import { createOutbound } from "./net/create-outbound.ts";
import { createFetchPinned } from "./net/fetch-pinned.ts";
import { createProviderMessages } from "./registrations/provider-messages.ts";
import { type RegistrarTiming, startRegistrar } from "./registrations/registrar.ts";
import { createRowLimit } from "./resources/kit/row-limit.ts";
import { getPresets } from "./verify/presets.ts";

/**
 * A running gateway. During disposal, `/readyz` reports that the gateway is stopping, and requests in flight complete. Embedded servers
 * stop last.
 */
export interface Gateway extends AsyncDisposable {
  readonly port: number;
  /** Prints a greeting for the operator. Includes the first API key until a greeting with the key was printed successfully. */
  readonly greet: (print: Print) => Promise<void>;
}

export interface GatewayDeps {
  readonly log: Log;
  readonly signal: AbortSignal;
  /** Available channel kinds. Defaults to the kinds in `channels/kinds.ts`. */
  readonly channelKinds?: ChannelKinds;
  /** Timing of the workers that run sources, for tests. Omitted values have their production defaults. */
  readonly sourcesTiming?: SourcesTiming;
  readonly handlersTiming?: Partial<HandlersTiming>;
  readonly housekeeperTiming?: Partial<HousekeeperTiming>;
  readonly registrarTiming?: Partial<RegistrarTiming>;
  readonly problemTiming?: Partial<ProblemTiming>;
  /**
   * Maximum time for a channel lookup, a schema validation, a reply from Redis and a connection to PostgreSQL, in ms. After that, the
   * sender receives 503. The defaults are 3,000 to 4,000, because many senders give up after five seconds.
   */
  readonly timeoutMs?: number;
  /** Called when the gateway has loaded everything and before it becomes ready. */
  readonly beforeReady?: () => void;
  /** Called during shutdown, after `/readyz` reports the shutdown. The gateway accepts connections until the promise resolves. */
  readonly beforeClosing?: () => Promise<unknown>;
  /** `undefined` if this gateway is the only process of its machine. */
  readonly machine?: Machine | undefined;
}

/**
 * Builds the object graph and starts serving. The port is bound before any data is written. Until the gateway is ready, `/readyz` reports
 * the reason. If `signal` aborts, startup ends and `/readyz` reports that the gateway is stopping.
 *
 * @throws DataDirInUseError, RedisUnfitError, MigrationError, WrongMasterKeyError, or an Error that suggests a fix
 */
export async function startGateway(config: Config, deps: GatewayDeps): Promise<Gateway> {
  const { log, signal, channelKinds = ownKinds, sourcesTiming, timeoutMs, beforeClosing, machine } = deps;
  await using opening = new AsyncDisposableStack();
  const clock = Date.now;
  const has = (role: Role): boolean => config.roles.includes(role);
  const metrics = createMetrics({ includeProcessMetrics: true, channels: config.metricsChannels });
  const presets = getPresets();
  const outbound = opening.use(createOutbound(config));
  const { dataDir } = opening.use(claimDataDir(config, machine));
  let starting = machine ? "is starting" : "is starting its embedded servers";
  const health = { metrics, metricsToken: config.metricsToken };
  const startingCheck: HealthCheck = { name: "running", check: () => ({ ok: false, reason: starting }) };
  const onInvalid = createInvalidRequestReport({ metrics, log });
  const startingApp = createStartingApp({ clock, health: { ...health, checks: [startingCheck] } });
  const listener = opening.use(await startListener(config, startingApp, { onInvalid, ...machine }));
  const urls = publicUrls(config, listener.port);
  if (config.metricsListen && machine === undefined)
    opening.use(await startMetricsListener(config.metricsListen, { clock, log, onInvalid, metrics }));

  const { foundation, stores, warnings, masterKey, limitDefaults, limitsOf } = opening.use(
    await openFoundation({
      config,
      dataDir,
      machine,
      metrics,
      channelKinds,
      presets,
      outbound,
      clock,
      log,
      signal,
      timeoutMs,
      onWaiting: (reason) => {
        starting = `is starting: ${reason}`;
      },
    }),
  );
  const { db, changes, keyring, redis, redisClock, schemas } = foundation;
  const bus = {
    groups: createGroups({ redis }),
    topics: createTopics({ redis }),
    entries: createEntryIndex({ redis }),
    ...createSourceBus(redis),
  };
  const checkDeps: CheckChannelDeps = {
    channelKinds,
    presets,
    checkDefinitions: (source) => checkDefinitions(schemas, source, signal),
  };
  await bootstrap({
    db,
    keyring,
    clock,
    apiKey: config.apiKey,
    welcome: config.databaseUrl === undefined ? await createWelcomeChannel(checkDeps) : undefined,
  });

  const appended = createAppendedListeners();
  const overLimit = opening.use(await startOverLimit({ redis, log }));
  const path = opening.use(
    createEventPath({
      ...foundation,
      limitsOf,
      isOverLimit: overLimit.has,
      storedChannels: createStoredChannels({ db, keyring }),
      ...urls,
      fetchPinned: createFetchPinned(outbound),
      captureSecret: createCaptureSecret({ db, keyring, nowMs: clock }),
      ...createProviderMessages(foundation),
      onAppended: appended.notify,
      timeoutMs,
    }),
  );
  const clientAddressOf = createClientAddressOf(config.trustProxy, (peer) =>
    log.warn(
      { event: "proxy.untrusted", peer },
      "X-Forwarded-For is not trusted: if your proxy sends it, add the proxy's network to INLET_TRUST_PROXY; otherwise all its clients count as one sender",
    ),
  );
  const limits = createHookLimits({
    ...foundation,
    clientAddressOf,
    requestsPerSecond: config.hookRequestsPerSecond,
    limitsOf,
    isOverLimit: overLimit.has,
  });
  const bytesOf = (id: string): number => limitsOf(id).bodyBytes ?? Number.POSITIVE_INFINITY;
  const bodies = createBodyBudget({ ...foundation, bytesOf });
  const runtimes = new Map<ChannelKindName, ChannelRuntime>();
  for (const kind of channelKinds.values()) {
    // All workers must use the same clock, because a source can move from one worker to another.
    const kindDeps = { ...foundation, clock: redisClock.now, readInWorker: path.readInWorker(kind) };
    runtimes.set(kind.kind, opening.use(await kind.start(kindDeps)));
  }
  if (has("delivery")) opening.use(startGroupReconciler({ ...foundation, ...bus }));
  const housekeeper = opening.use(
    startHousekeeper({
      ...foundation,
      ...bus,
      appended,
      quarantine: path.quarantine,
      deliveryRecords: path.deliveryRecords,
      auditRetentionDays: config.auditRetentionDays,
      topicBytesPerOrganization: limitDefaults.topicBytes,
      onTrimmed: (entries) => metrics.trimmedOverLimit.inc(entries),
      takesTurns: config.roles.some((role) => role !== "hooks"),
      mostShown: config.metricsChannels,
      timing: deps.housekeeperTiming ?? {},
    }),
  );
  opening.use(
    await startProblems({
      ...foundation,
      ...urls,
      ...{ bus, path, checkDeps, housekeeper, warnings },
      timing: deps.problemTiming ?? {},
    }),
  );
  opening.use(startDrainers({ ...foundation, ...path }));
  const { credentialsOf, issuerFetch } = opening.use(createConnections(foundation));
  const handlers = opening.use(
    openHandlers({ ...foundation, ...urls, appended, credentialsOf, timing: deps.handlersTiming ?? {} }),
  );
  if (has("delivery")) opening.use(handlers.start());
  const sources = has("sources")
    ? opening.use(
        startSources({
          ...foundation,
          limitsOf,
          bus,
          path,
          runtimes,
          credentialsOf,
          share: machine?.sourceShare,
          stopping: signal,
          timing: sourcesTiming,
        }),
      )
    : undefined;

  if (has("sources"))
    opening.use(
      startRegistrar({ ...foundation, ...urls, ...path, credentialsOf, timing: deps.registrarTiming }),
    );
  opening.use(startConfigCheck(foundation));
  observeGateway({ ...foundation, housekeeper, overLimit });
  const draining = new AbortController();
  const stopping = AbortSignal.any([signal, draining.signal]);
  const checks = createHealthChecks({ ...foundation, stores, warnings, masterKey, sources, stopping });
  machine?.provide({
    health: () => readHealth(checks),
    metrics: () => metrics.registry.getMetricsAsJSON(),
  });
  const app = await createApp({
    clock,
    health: { ...health, machine, checks },
    receiveHook: has("hooks") ? createReceive({ ...path.receiving, runtimes, limits, bodies }) : undefined,
    api: has("api")
      ? {
          ...foundation,
          ...checkDeps,
          ...bus,
          ...path,
          ...urls,
          ...createCallerPath({ ...foundation, clientAddressOf }),
          refusals: opening.use(startRejectionCounts(foundation)),
          runtimes,
          credentialsOf,
          issuerFetch,
          traceUrl: config.traceUrl,
          sipProviders: config.sipProviders,
          requireRoom: createRowLimit((id) => limitsOf(id).rowsPerResource),
          limitDefaults,
          onDeleted: housekeeper.settleNow,
          sendAgain: handlers.sendAgain,
          findRetry: handlers.findRetry,
          readings: createGroupProgressReader({ redis, groups: bus.groups }),
          readChanges: changes.readNow,
          console: { signIn: consoleSignIn(config) },
          stopping,
        }
      : undefined,
  });
  deps.beforeReady?.();
  opening.use(listener.serve(app, beforeClosing));
  // Disposal runs in reverse order, so long-lived responses end before the listener waits for open requests.
  opening.defer(() => draining.abort());
  const { port } = listener;
  const { durability } = redis.state();
  log.info({ event: "gateway.ready", port, roles: config.roles, durability, ...urls }, "gateway is ready");

  const redisCli = formatRedisCli(parseRedisAddresses(stores.redisUrl)[0], redis.state());
  const pageUrl = (name: string) => (has("api") ? urls.baseUrl.replace(/v1$/, name) : undefined);
  const pages = { docsUrl: pageUrl("docs"), consoleUrl: pageUrl("console") };
  const owned = opening.move();
  return {
    port,
    greet: (print) => greet(foundation, { ...urls, ...pages, redisCli }, print),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
