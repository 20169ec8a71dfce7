/**
 * The memory of cached channels: compiles many as a gateway does, and prints one line of JSON with what each of them takes of the heap and
 * what the cache reckons, in bytes.
 *
 * usage: node --expose-gc cached-channels.ts
 */
import { setImmediate } from "node:timers/promises";
import { channelKinds } from "../../src/channels/kinds.ts";
import type { LiveChannel as StoredChannel } from "../../src/data/channels/live-channels.ts";
import { createCompileChannel } from "../../src/gateway/compile-channel.ts";
import { createRulesCache } from "../../src/ingest/rules-cache.ts";
import { createPathCache } from "../../src/normalize/paths/jsonpath.ts";
import { readPresets } from "../../src/verify/presets.ts";
import { definitionsOf } from "./channel.ts";

const CHANNELS = 10_000;
/** These make what all share. */
const FIRST = 200;

export interface CachedChannels {
  /** Channels whose settings and definitions are equal. */
  readonly equal: number;
  /** Channels of GitHub, equal but for their secrets. */
  readonly secrets: number;
  /** Channels of which no two have the same settings. */
  readonly different: number;
}

const presets = readPresets();
const settingsOf: Readonly<Record<keyof CachedChannels, (n: number) => object>> = {
  equal: () => ({}),
  secrets: (n) => ({
    preset: "github",
    verification: { scheme: "preset" },
    secrets: [{ value: `the secret of channel ${n}` }],
  }),
  different: (n) => ({ expectEverySeconds: 60 + n }),
};
const stored = JSON.stringify(channelKinds.get("webhook")?.settings.parse({}));
const definitions = JSON.stringify(definitionsOf(["push", "issues", "pull_request"]));

const figures: Record<string, number> = {};
for (const [name, changes] of Object.entries(settingsOf)) figures[name] = await bytesOf(changes);
process.stdout.write(`${JSON.stringify(figures satisfies Record<string, number>)}\n`);

async function bytesOf(changes: (n: number) => object): Promise<number> {
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
    load: async (id) => ({ channel: compile(storedAs(Number(id.slice(3)), changes)), leftMs: undefined }),
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
  // Held until it was measured.
  cache.clear();
  return Math.round(bytes);
}

/** Fresh values, as they come from the database. */
function storedAs(number: number, changes: (n: number) => object): StoredChannel {
  const fresh = JSON.parse(
    JSON.stringify({ uid: `hook-${number}`, appId: `app_${number}`, organizationId: "org_1" }),
  );
  return {
    identity: { number, kind: "webhook", ...fresh },
    version: 1,
    state: "active",
    pause: undefined,
    settings: { ...JSON.parse(stored), ...changes(number) },
    definitions: JSON.parse(definitions),
    topics: new Map(),
    connectionId: null,
  };
}

async function heapBytes(): Promise<number> {
  // Weakly held values go between turns.
  for (let i = 0; i < 3; i++) {
    globalThis.gc?.();
    await setImmediate();
  }
  return process.memoryUsage().heapUsed;
}
