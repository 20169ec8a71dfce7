import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { startGatewayProcess } from "../support/gateway-process.ts";
import { startSharedStores } from "../support/stores.ts";
import { startStreamServer } from "../support/stream-server.ts";
import type { Flood, FloodBody, FloodCounts, FloodOptions, FloorWay } from "./flood.ts";
import { quantile, type Rig, selectPart } from "./rig.ts";

/** An organization with an API key for all operations. */
export interface Tenant {
  // biome-ignore lint/suspicious/noExplicitAny: an API response
  readonly call: (path: string, body: object) => Promise<any>;
  /** Installs an app with these channels. Returns their paths; `null` for pull channels. */
  readonly install: (channels: readonly object[]) => Promise<readonly (string | null)[]>;
}

export async function createTenant(
  {
    origin,
    api,
  }: { readonly origin: string; readonly api: <T>(...args: [string, string, object]) => Promise<T> },
  name: string,
): Promise<Tenant> {
  const made = await api<{ readonly apiKey: { readonly key: string } }>("POST", "/organizations", { name });
  const headers = { authorization: `Bearer ${made.apiKey.key}`, "content-type": "application/json" };
  const call: Tenant["call"] = async (path, body) => {
    const response = await fetch(`${origin}/v1${path}`, {
      method: "POST",
      headers,
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return response.json();
  };
  return {
    call,
    async install(channels) {
      const { id } = await call("/blueprints", { title: name, channels: [] });
      const app = await call("/apps/install", { blueprintId: id });
      const urls: (string | null)[] = [];
      for (const channel of channels) urls.push((await call(`/apps/${app.id}/channels`, channel)).url);
      return urls.map((url) => url && new URL(url).pathname);
    },
  };
}

export interface Sent {
  /** Response status, or 0 without a response. */
  readonly status: number;
  readonly ms: number;
  readonly retryAfter: string | null;
}

export async function post(url: string, body: object, withinMs = 60_000): Promise<Sent> {
  const startedAt = performance.now();
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(withinMs),
  }).catch(() => undefined);
  await response?.arrayBuffer();
  const retryAfter = response?.headers.get("retry-after") ?? null;
  return { status: response?.status ?? 0, ms: performance.now() - startedAt, retryAfter };
}

const LIMIT = 50;
const MIB = 1024 * 1024;
const MAX_IN_FLIGHT = 500;
/**
 * Interval of the small organization's deliveries. It is within the rate limit and gives several hundred
 * responses, so that the p99 is about the fifth longest.
 */
const SMALL_EVERY_MS = 25;
/** Number of alternations between the compared loads. They alternate so that other activity on the machine affects both. */
const TURNS = 6;
const TURN_MS = 2_000;
/** Time to wait after a change of load before measuring. */
const SETTLE_MS = 500;

interface Watched {
  readonly answers: readonly Sent[];
  /** CPU use of the gateway's main thread, as a fraction of one core. */
  readonly ownShare: number;
}

interface Load {
  readonly name: string;
  /** Target channel; `undefined` for the event stream. */
  readonly channel?: "in" | "xml" | "part" | "whole" | "broken";
  readonly everyMs?: number;
  readonly body?: FloodBody;
  /** Response status that must occur, to prove that the load took effect. */
  readonly shownBy?: number;
  /** Bytes written to Redis per request. The same bytes are also written directly, to measure the part that Redis causes. */
  readonly redisBytes?: number;
  /** Whether the limit is guaranteed. If false, the result is only reported. */
  readonly isPromised?: boolean;
  /** If parsing dominates: interval at which another thread parses the same bodies, to measure the part that the machine causes. */
  readonly readEveryMs?: number;
}

/** Expensive loads of one organization, within its limit or beyond. */
const LOADS: readonly Load[] = [
  // Sends at ten times the limit, regardless of response times.
  {
    name: "hooks at ten times its limit",
    channel: "in",
    everyMs: 1_000 / (10 * LIMIT),
    body: { kind: "json" },
    shownBy: 429,
  },
  { name: "an event stream without pauses" },
  {
    name: "XML of 1 MiB with too many tags, quarantined",
    channel: "xml",
    everyMs: 1_000 / 20,
    body: { kind: "xml", bytes: MIB },
    shownBy: 200,
    redisBytes: MIB,
  },
  {
    name: "XML of 16 KiB at its limit",
    channel: "xml",
    everyMs: 1_000 / LIMIT,
    body: { kind: "xml", bytes: 16 * 1024 },
    shownBy: 200,
    readEveryMs: 1_000 / LIMIT,
  },
  {
    name: "JSON of 512 KiB with a small published part, at its limit",
    channel: "part",
    everyMs: 1_000 / LIMIT,
    body: { kind: "rows", bytes: MIB / 2 },
    shownBy: 200,
    readEveryMs: 1_000 / LIMIT,
  },
  {
    name: "gzip that expands to 5 MiB, at its limit",
    channel: "part",
    everyMs: 1_000 / LIMIT,
    body: { kind: "gzip", bytes: 5 * MIB },
    shownBy: 200,
    // About the interval at which the gateway accepts these requests.
    readEveryMs: 1_000 / 14,
  },
  {
    name: "events of 5 MiB, ten a second",
    isPromised: false,
    channel: "whole",
    everyMs: 100,
    body: { kind: "gzip", bytes: 5 * MIB },
    shownBy: 200,
    redisBytes: 5 * MIB,
  },
  {
    name: "quarantined bodies of 5 MiB, ten a second",
    channel: "broken",
    everyMs: 100,
    body: { kind: "gzip", bytes: 5 * MIB },
    shownBy: 200,
    redisBytes: 5 * MIB,
  },
];

/**
 * Maximum ratio of the p99 during another organization's load to the p99 during a baseline (direct writes
 * or parsing only).
 */
const MAX_FACTOR = 1.2;
/** Normal variation of the p99 between rounds without load. */
const SCATTER_MS = 5;
/** A verdict needs this many rounds. With fewer, the p99 would depend on a handful of responses. */
const ROUNDS_OF_A_VERDICT = 3;

const WRITES: readonly (readonly [FloorWay, string])[] = [
  ["xadd", "direct writes of the same bytes"],
  ["script", "writes of the same bytes by a script"],
];

interface Baseline {
  readonly name: string;
  readonly flood: Flood;
  readonly answers: Sent[];
}

function createBaselines(
  { redisBytes, everyMs = 0, readEveryMs, body }: Load,
  redisPort: number,
): readonly Baseline[] {
  const baselines: Baseline[] = [];
  if (redisBytes !== undefined)
    for (const [way, name] of WRITES)
      baselines.push({ name, flood: { redisPort, everyMs, entryBytes: redisBytes, way }, answers: [] });
  if (readEveryMs !== undefined && body !== undefined) {
    const flood = { everyMs: readEveryMs, reads: body };
    baselines.push({ name: "another thread that only parses the same bodies", flood, answers: [] });
  }
  return baselines;
}

/**
 * One organization runs each expensive load in turn, while a small one sends a few deliveries. Those must always be accepted. The report
 * shows how much longer their responses take. With three or more rounds this is also judged, which needs an otherwise idle machine.
 */
export const tenants: Rig = async ({ rounds, part }) => {
  const selected = selectPart(
    LOADS.map(({ name }) => name),
    part,
  );
  await using stores = await startSharedStores();
  await using feed = await startStreamServer();
  await using gateway = await startGatewayProcess({
    ...stores.env,
    INLET_HOOK_REQUESTS_PER_SECOND: String(LIMIT),
    INLET_SOURCE_DELIVERIES_PER_SECOND: String(LIMIT),
    INLET_ALLOW_NETWORKS: "127.0.0.0/8",
    INLET_LOG_LEVEL: "error",
  });
  const events = [{ type: "made", idPath: "$.id" }];
  const big = await createTenant(gateway, "Big");
  const stream = { url: feed.url, run: "always", reconnect: { initialMs: 100 } };
  // Publishes a small part of large bodies, so that Redis does not fill up.
  const publishing = (uid: string, payloadPath: string) => ({
    uid,
    kind: "webhook",
    events: [{ type: "part", payloadPath }],
  });
  const paths = await big.install([
    { uid: "in", kind: "webhook", events },
    publishing("xml", "$.l.id"),
    publishing("part", "$.id"),
    {
      uid: "whole",
      kind: "webhook",
      events: [{ type: "whole" }],
      config: { retention: { maxEntries: 10 } },
    },
    publishing("broken", "$.missing"),
    { uid: "stream", kind: "sse", config: stream, events: [{ type: "made" }] },
  ]);
  const channels = ["in", "xml", "part", "whole", "broken"] as const;
  const [smallPath] = await (await createTenant(gateway, "Small")).install([
    { uid: "in", kind: "webhook", events },
  ]);
  await using flood = startFlood({ mostInFlight: MAX_IN_FLIGHT });

  let sent = 0;
  const text = "x".repeat(400);
  async function watch(): Promise<Watched> {
    await delay(SETTLE_MS);
    const answers: Promise<Sent>[] = [];
    const [beganAt, before] = [performance.now(), await ownThreadMs(gateway.pid)];
    for (let n = 0; n < TURN_MS / SMALL_EVERY_MS; n++) {
      answers.push(post(`${gateway.origin}${smallPath}`, { id: `small-${++sent}`, text }));
      await delay(SMALL_EVERY_MS);
    }
    const ownMs = (await ownThreadMs(gateway.pid)) - before;
    const ownShare = ownMs / (performance.now() - beganAt);
    return { answers: await Promise.all(answers), ownShare };
  }

  async function watchDuring({ body, channel, everyMs = 0 }: Load) {
    if (body === undefined || channel === undefined) {
      const feeding = setInterval(() => feed.make(LIMIT), 100);
      const watched = await watch();
      clearInterval(feeding);
      return { ...watched, bigAnswers: new Map<number, number>() };
    }
    flood.begin({ url: `${gateway.origin}${paths[channels.indexOf(channel)]}`, everyMs, body });
    return { ...(await watch()), bigAnswers: await flood.end() };
  }

  /** Measures the small organization during a baseline load that bypasses the gateway. */
  async function watchBaseline(baseline: Baseline): Promise<void> {
    flood.begin(baseline.flood);
    baseline.answers.push(...(await watch()).answers);
    await flood.end();
  }

  const chosen = LOADS.filter(({ name }) => selected.includes(name)).map((load) => ({
    load,
    alone: [] as Sent[],
    loaded: [] as Sent[],
    baselines: createBaselines(load, stores.servers[0]?.port ?? 0),
    shares: { alone: [] as number[], loaded: [] as number[] },
    bigAnswers: new Map<number, number>(),
  }));
  for (let round = 0; round < rounds; round++) {
    for (const { load, alone, loaded, baselines, shares, bigAnswers } of chosen) {
      for (let turn = 0; turn < TURNS; turn++) {
        const quiet = await watch();
        for (const baseline of baselines) await watchBaseline(baseline);
        const watched = await watchDuring(load);
        alone.push(...quiet.answers);
        loaded.push(...watched.answers);
        shares.alone.push(quiet.ownShare);
        shares.loaded.push(watched.ownShare);
        for (const [status, count] of watched.bigAnswers)
          bigAnswers.set(status, (bigAnswers.get(status) ?? 0) + count);
      }
    }
  }

  const lines: string[] = [];
  const faults: string[] = [];
  for (const { load, alone, loaded, baselines, shares, bigAnswers } of chosen) {
    const { name, shownBy, isPromised = true } = load;
    const rejected = [...alone, ...loaded].filter(({ status }) => status !== 200);
    if (rejected.length > 0)
      faults.push(
        `${rejected.length} deliveries of the small organization were rejected: ${rejected[0]?.status}`,
      );
    if (shownBy !== undefined && !bigAnswers.has(shownBy))
      faults.push(
        `the large organization never got a response ${shownBy}, so the load "${name}" had no effect`,
      );
    const verdicts =
      baselines.length === 0
        ? [judge("relative to no load", alone, loaded)]
        : baselines.map(({ name: baseline, answers }) => judge(`relative to ${baseline}`, answers, loaded));
    if (isPromised && rounds >= ROUNDS_OF_A_VERDICT && verdicts.some(({ holds }) => !holds))
      faults.push(`${name}: the small organization waits too long during this load`);
    const counts = [...bigAnswers].map(([status, count]) => `${count} × ${status}`).join(", ");
    const ownThread = [shares.alone, shares.loaded].map(
      (fractions) => `${(100 * mean(fractions)).toFixed(1)} %`,
    );
    lines.push(
      `small organization, ${rounds * TURNS} turns without and with load (${name}): ${compare(alone, loaded)}`,
      ...baselines.map(({ name: baseline, answers }) => `with ${baseline}: ${compare(alone, answers)}`),
      ...verdicts.map(({ text }) => text),
      `CPU use of the gateway's main thread: ${ownThread.join(" → ")} of a core`,
      ...(counts === "" ? [] : [`responses to the large organization: ${counts}`]),
    );
  }
  return { lines, faults };
};

const mean = (numbers: readonly number[]): number =>
  numbers.reduce((sum, one) => sum + one, 0) / numbers.length;

/** Returns the CPU time of a process's main thread in ms. Independent of other load on the machine (schedstat in proc(5)). */
async function ownThreadMs(pid: number): Promise<number> {
  const [onCore] = (await readFile(`/proc/${pid}/schedstat`, "utf8")).split(" ");
  return Number(onCore) / 1e6;
}

function judge(than: string, before: readonly Sent[], loaded: readonly Sent[]) {
  const at = (share: number) => [quantile(msOf(before), share), quantile(msOf(loaded), share)] as const;
  const [p90, p99] = [at(0.9), at(0.99)];
  const [was, is] = p99;
  const holds = is <= was * MAX_FACTOR || is <= was + SCATTER_MS;
  const times = ([one, other]: readonly [number, number]): string => `× ${(other / one).toFixed(2)}`;
  const text = `p90 ${times(p90)}, p99 ${times(p99)} (${(is - was).toFixed(1)} ms more) ${than}: ${holds ? "ok" : "TOO SLOW"}`;
  return { holds, text };
}

const msOf = (answers: readonly Sent[]): readonly number[] => answers.map(({ ms }) => ms);

function compare(alone: readonly Sent[], loaded: readonly Sent[]): string {
  const shares = [0.5, 0.9, 0.99].map((share) => {
    const at = (answers: readonly Sent[]): number => quantile(msOf(answers), share);
    const [before, after] = [at(alone), at(loaded)];
    return `p${share * 100} ${before.toFixed(1)} → ${after.toFixed(1)} ms (× ${(after / before).toFixed(2)})`;
  });
  return shares.join(", ");
}

function startFlood(workerData: FloodOptions) {
  const worker = new Worker(new URL("./flood.ts", import.meta.url), { workerData });
  return {
    begin: (flood: Flood) => worker.postMessage(flood),
    /** Ends the flood, waits for all responses, and returns their counts. */
    async end(): Promise<FloodCounts> {
      const message = once(worker, "message");
      worker.postMessage("end");
      return (await message)[0] as FloodCounts;
    },
    [Symbol.asyncDispose]: async () => void (await worker.terminate()),
  };
}
