import { createEntryIndex, type EntryIndex } from "../../src/bus/entry-index.ts";
import { createGroups, type Groups } from "../../src/bus/groups.ts";
import { openRedis, type RedisBus } from "../../src/bus/redis.ts";
import { createTopics, type Topics } from "../../src/bus/topics.ts";
import { channelKinds } from "../../src/channels/kinds.ts";
import { createCaptureSecret } from "../../src/data/capture-secret.ts";
import { createLiveChannels } from "../../src/data/live-channels.ts";
import type { IngestResult } from "../../src/event/ingest.ts";
import type { Outcome } from "../../src/event/outcome.ts";
import { createEventPath, type EventPath } from "../../src/gateway/event-path.ts";
import { UnavailableError } from "../../src/lib/errors.ts";
import { startSchemaCompiler } from "../../src/lib/json-schema/compiler.ts";
import { createLog } from "../../src/log.ts";
import { createMetrics } from "../../src/metrics.ts";
import type { FetchPinned } from "../../src/verify/keys/key-cache.ts";
import { type Presets, readPresets } from "../../src/verify/presets.ts";
import { createTestApi, type TestApi } from "./api.ts";
import { type RedisServer, startRedis } from "./redis.ts";

/** The API and the way of events over a PostgreSQL and a Redis of their own, without a listener. */
export interface TestSpine extends AsyncDisposable {
  readonly api: TestApi;
  readonly server: RedisServer;
  readonly redis: RedisBus;
  readonly groups: Groups;
  readonly topics: Topics;
  readonly entries: EntryIndex;
  readonly path: EventPath;
  /** Installs an app with these channels; answers it as the API does. */
  // biome-ignore lint/suspicious/noExplicitAny: an answer of the API
  readonly install: (...channels: object[]) => Promise<any>;
  /** A delivery to that address. */
  readonly deliver: (
    channelId: string,
    body: unknown,
    headers?: Record<string, string>,
  ) => Promise<IngestResult>;
  /** A delivery that must be accepted. */
  readonly send: (channelId: string, body: unknown, headers?: Record<string, string>) => Promise<Outcome>;
  /** What is called after a deletion. */
  onDeleted: () => Promise<void>;
}

const { signal } = new AbortController();

export interface SpineOptions {
  /** Default: all that are known. */
  readonly presets?: Presets;
  /** Default: nothing can be fetched. */
  readonly fetchPinned?: FetchPinned;
}

const fetchNothing: FetchPinned = async () => {
  throw new UnavailableError("this test fetches nothing");
};

export async function startTestSpine(options: SpineOptions = {}): Promise<TestSpine> {
  await using starting = new AsyncDisposableStack();
  const server = starting.use(await startRedis());
  const redis = starting.use(
    await openRedis({
      url: server.url,
      log: createLog({ level: "silent" }),
      durability: "none",
      durabilityAsserted: false,
      signal,
    }),
  );
  const schemas = starting.use(startSchemaCompiler());
  const groups = createGroups({ redis });
  const topics = createTopics({ redis });
  const entries = createEntryIndex({ redis });
  const hooks = { onDeleted: async () => {} };
  let made: EventPath | undefined;
  const api = starting.use(
    await createTestApi({
      ...(options.presets ? { presets: options.presets } : {}),
      async openBus({ db }, keyring) {
        made = createEventPath({
          ...{ redis, keyring, channelKinds, schemas },
          presets: options.presets ?? readPresets(),
          hooksUrl: () => "https://hooks.example",
          fetchPinned: options.fetchPinned ?? fetchNothing,
          captureSecret: createCaptureSecret({ db, keyring, nowMs: Date.now }),
          liveChannels: createLiveChannels({ db, keyring }),
          metrics: createMetrics(),
          clock: Date.now,
          blindMs: () => 0,
          onAppended: () => {},
        });
        const { quarantine, redrive, findByNumber: findLiveChannel } = made;
        const onDeleted = () => hooks.onDeleted();
        return { redis, groups, topics, entries, quarantine, redrive, findLiveChannel, onDeleted };
      },
    }),
  );
  if (!made) throw new Error("the API has opened no bus");
  const path = made;

  const deliver: TestSpine["deliver"] = async (channelId, body, headers = {}) => {
    // As if each change had come in by the feed.
    path.rules.clear();
    const channel = await path.rules.find(channelId);
    if (!channel) throw new Error("there is no such channel");
    const request = {
      method: "POST",
      target: `/hooks/${channelId}`,
      headers: { "content-type": "application/json", ...headers },
      body: Buffer.isBuffer(body)
        ? body
        : Buffer.from(typeof body === "string" ? body : JSON.stringify(body)),
      arrivedAtMs: Date.now(),
    };
    return path.ingest(channel, request, { signal });
  };

  const owned = starting.move();
  return Object.assign(hooks, {
    ...{ api, server, redis, groups, topics, entries, path, deliver },
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
