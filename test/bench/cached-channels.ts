/**
 * Measures the memory of cached channels. Compiles many channels like a gateway does, and prints one line of JSON in bytes: the heap
 * used per channel, and the size that the cache estimates.
 *
 * usage: node --expose-gc cached-channels.ts
 */
import { setImmediate } from "node:timers/promises";
import { channelKinds } from "../../src/channels/kinds.ts";
import type { StoredChannel } from "../../src/data/channels/stored-channels.ts";
import type { ChannelKindName } from "../../src/event/channel.ts";
import { createCompileChannel } from "../../src/ingest/compile-channel.ts";
import { createRulesCache } from "../../src/ingest/rules-cache.ts";
import { createPathCache } from "../../src/normalize/paths/jsonpath.ts";
import { readPresets } from "../../src/verify/presets.ts";
import { definitionsOf } from "./channel.ts";

const CHANNELS = 10_000;
/** Channels compiled first, so that data shared by all channels is not measured. */
const FIRST = 200;

export interface CachedChannels {
  /** Bytes per channel, for channels with equal config and definitions. */
  readonly equal: number;
  /** Bytes per channel, for GitHub channels that differ only in their secrets. */
  readonly secrets: number;
  /** Bytes per channel, for channels with different config. */
  readonly different: number;
  /** Bytes per channel, for channels with an open stream, each at a different address. */
  readonly streams: number;
}

const presets = readPresets();
interface Content {
  readonly kind: ChannelKindName;
  readonly config: object;
}

const contentOf: Readonly<Record<keyof CachedChannels, (n: number) => Content>> = {
  equal: () => ({ kind: "webhook", config: {} }),
  secrets: (n) => ({
    kind: "webhook",
    config: {
      preset: "github",
      verification: { scheme: "preset" },
      secrets: [{ value: `the secret of channel ${n}` }],
    },
  }),
  different: (n) => ({ kind: "webhook", config: { expectEverySeconds: 60 + n } }),
  streams: (n) => ({ kind: "sse", config: { url: `https://streams.example.com/of/${n}` } }),
};
const definitions = JSON.stringify(definitionsOf(["push", "issues", "pull_request"]));

const figures: Record<string, number> = {};
for (const [name, content] of Object.entries(contentOf)) figures[name] = await bytesOf(content);
process.stdout.write(`${JSON.stringify(figures satisfies Record<string, number>)}\n`);

async function bytesOf(content: (n: number) => Content): Promise<number> {
  const compile = createCompileChannel({
    hooksUrl: "http://127.0.0.1",
    keysOf: () => ({ get: () => [], renew: async () => undefined }),
    channelKinds,
    pathsOf: createPathCache(10_000),
    presets,
    onShadowed() {},
  });
  const cache = createRulesCache({
    isChannelId: () => true,
    load: async (id) => ({ channel: compile(storedAs(Number(id.slice(3)), content)), leftMs: undefined }),
    feedStalenessMs: () => 0,
    maxBytes: 1024 ** 3,
  });
  const fill = async (from: number, to: number): Promise<void> => {
    for (let n = from; n < to; n++) await cache.find(`ch_${String(n).padStart(36, "0")}`);
  };
  await fill(0, FIRST);
  const before = await heapBytes();
  await fill(FIRST, FIRST + CHANNELS);
  const bytes = ((await heapBytes()) - before) / CHANNELS;
  // The cache is only cleared here, so its channels stay alive until they have been measured.
  cache.clear();
  return Math.round(bytes);
}

/** Returns new objects on each call, as a read from the database would. */
function storedAs(number: number, content: (n: number) => Content): StoredChannel {
  const { kind, config } = content(number);
  const fresh = JSON.parse(
    JSON.stringify({ uid: `hook-${number}`, appId: `app_${number}`, organizationId: "org_1" }),
  );
  return {
    identity: { number, kind, ...fresh },
    version: 1,
    state: "active",
    pause: undefined,
    config: JSON.parse(JSON.stringify(channelKinds.get(kind)?.configSchema.parse(config))),
    definitions: kind === "webhook" ? JSON.parse(definitions) : [{ type: "order" }],
    topics: new Map(),
    connectionId: null,
  };
}

async function heapBytes(): Promise<number> {
  // A weakly held value is only collected in a later iteration of the event loop.
  for (let i = 0; i < 3; i++) {
    globalThis.gc?.();
    await setImmediate();
  }
  return process.memoryUsage().heapUsed;
}
