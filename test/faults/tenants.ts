import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { startGatewayProcess } from "../support/gateway-process.ts";
import { startSharedStores } from "../support/stores.ts";
import { startStreamServer } from "../support/stream-server.ts";
import type { Flood, FloodBody, FloodCounts, FloodOptions, FloorWay } from "./flood.ts";
import { quantile, type Rig } from "./rig.ts";

/** An organization of its own, with a key that may do all in it. */
export interface Tenant {
  // biome-ignore lint/suspicious/noExplicitAny: an answer of the API
  readonly call: (path: string, body: object) => Promise<any>;
  /** Installs an app with these channels; answers their paths, null where a channel fetches. */
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
  /** 0: no answer. */
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
const MOST_IN_FLIGHT = 500;
/** Below its limit; of several hundred answers the p99 is the fifth longest or so. */
const SMALL_EVERY_MS = 25;
/** The two are compared in turns: what else the machine does then slows down both. */
const TURNS = 6;
const TURN_MS = 2_000;
/** What comes right after a change of turns belongs to neither. */
const SETTLE_MS = 500;

interface Watched {
  readonly answers: readonly Sent[];
  /** Of a processor, the part that the gateway's own thread took: who waits for that, waits behind it. */
  readonly ownShare: number;
}

interface Burden {
  readonly name: string;
  /** The channel that it goes to; absent: its stream. */
  readonly channel?: "in" | "xml" | "part" | "whole" | "broken";
  readonly everyMs?: number;
  readonly body?: FloodBody;
  /** The answer that shows that it was one. */
  readonly shownBy?: number;
  /** Where Redis gets so many bytes each time: as many past the gateway say how much of it is Redis' own. */
  readonly redisBytes?: number;
  /** False: told, and not promised. */
  readonly isPromised?: boolean;
  /** Where reading is most of it: bodies that are read so often by another program say how much of it is the machine's. */
  readonly readEveryMs?: number;
}

/** What one organization does that costs much: beyond its limit, or within it. */
const BURDENS: readonly Burden[] = [
  // Ten times the limit, however long an answer takes.
  {
    name: "hooks at ten times its limit",
    channel: "in",
    everyMs: 1_000 / (10 * LIMIT),
    body: { kind: "json" },
    shownBy: 429,
  },
  { name: "a stream that never pauses" },
  {
    name: "XML of 1 MiB, which has too many tags and is quarantined",
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
    name: "JSON of 512 KiB, of which a part is published, at its limit",
    channel: "part",
    everyMs: 1_000 / LIMIT,
    body: { kind: "rows", bytes: MIB / 2 },
    shownBy: 200,
    readEveryMs: 1_000 / LIMIT,
  },
  {
    name: "gzip that becomes 5 MiB, at its limit",
    channel: "part",
    everyMs: 1_000 / LIMIT,
    body: { kind: "gzip", bytes: 5 * MIB },
    shownBy: 200,
    // As many as are not refused.
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
    name: "5 MiB that are quarantined, ten a second",
    channel: "broken",
    everyMs: 100,
    body: { kind: "gzip", bytes: 5 * MIB },
    shownBy: 200,
    redisBytes: 5 * MIB,
  },
];

/** What another organization may add to the p99 of one, beyond what plain writes of as many bytes to the same Redis do, or reading alone. */
const MOST_ADDED = 1.2;
/** By so much the p99 of one that is alone differs from round to round. */
const SCATTER_MS = 5;
/** The p99 of fewer turns is that of a handful of answers. */
const ROUNDS_OF_A_VERDICT = 3;

const WRITES: readonly (readonly [FloorWay, string])[] = [
  ["xadd", "plain writes of as many bytes"],
  ["script", "writes of as many bytes by a script"],
];

/** What the small one is compared with, besides itself alone. */
interface Floor {
  readonly name: string;
  readonly flood: Flood;
  readonly answers: Sent[];
}

function floorsOf(
  { redisBytes, everyMs = 0, readEveryMs, body }: Burden,
  redisPort: number,
): readonly Floor[] {
  const floors: Floor[] = [];
  if (redisBytes !== undefined)
    for (const [way, name] of WRITES)
      floors.push({ name, flood: { redisPort, everyMs, entryBytes: redisBytes, way }, answers: [] });
  if (readEveryMs !== undefined && body !== undefined) {
    const flood = { everyMs: readEveryMs, reads: body };
    floors.push({ name: "another program that only reads as many", flood, answers: [] });
  }
  return floors;
}

/**
 * One organization does one costly thing after the other; another one sends a little meanwhile. None of that little is refused. How
 * much longer its answers take is told; of three rounds and more it is judged, and wants a machine with nothing else to do.
 */
export const tenants: Rig = async ({ rounds, part = "" }) => {
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
  // Of large bodies a small part is published: Redis is not to be filled.
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
  await using flood = startFlood({ mostInFlight: MOST_IN_FLIGHT });

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

  /** The small one's answers meanwhile, and the big one's. */
  async function watchBeside({ body, channel, everyMs = 0 }: Burden) {
    if (body === undefined || channel === undefined) {
      const feeding = setInterval(() => feed.make(LIMIT), 100);
      const watched = await watch();
      clearInterval(feeding);
      return { ...watched, bigAnswers: new Map<number, number>() };
    }
    flood.begin({ url: `${gateway.origin}${paths[channels.indexOf(channel)]}`, everyMs, body });
    return { ...(await watch()), bigAnswers: await flood.end() };
  }

  /** The small one's answers while that happens past the gateway. */
  async function watchFloor(floor: Floor): Promise<void> {
    flood.begin(floor.flood);
    floor.answers.push(...(await watch()).answers);
    await flood.end();
  }

  const chosen = BURDENS.filter(({ name }) => name.includes(part)).map((burden) => ({
    burden,
    alone: [] as Sent[],
    beside: [] as Sent[],
    floors: floorsOf(burden, stores.servers[0]?.port ?? 0),
    shares: { alone: [] as number[], beside: [] as number[] },
    bigAnswers: new Map<number, number>(),
  }));
  for (let round = 0; round < rounds; round++) {
    for (const { burden, alone, beside, floors, shares, bigAnswers } of chosen) {
      for (let turn = 0; turn < TURNS; turn++) {
        const quiet = await watch();
        for (const floor of floors) await watchFloor(floor);
        const watched = await watchBeside(burden);
        alone.push(...quiet.answers);
        beside.push(...watched.answers);
        shares.alone.push(quiet.ownShare);
        shares.beside.push(watched.ownShare);
        for (const [status, count] of watched.bigAnswers)
          bigAnswers.set(status, (bigAnswers.get(status) ?? 0) + count);
      }
    }
  }

  const lines: string[] = [];
  const faults: string[] = [];
  for (const { burden, alone, beside, floors, shares, bigAnswers } of chosen) {
    const { name, shownBy, isPromised = true } = burden;
    const refused = [...alone, ...beside].filter(({ status }) => status !== 200);
    if (refused.length > 0)
      faults.push(
        `${refused.length} deliveries of the small organization were refused: ${refused[0]?.status}`,
      );
    if (shownBy !== undefined && !bigAnswers.has(shownBy))
      faults.push(`the big organization was never answered ${shownBy}: nothing was shown by ${name}`);
    const verdicts =
      floors.length === 0
        ? [judge("of what it is alone", alone, beside)]
        : floors.map(({ name: what, answers }) => judge(`of what it is beside ${what}`, answers, beside));
    if (isPromised && rounds >= ROUNDS_OF_A_VERDICT && verdicts.some(({ holds }) => !holds))
      faults.push(`${name}: a small organization waits too long beside it`);
    const told = [...bigAnswers].map(([status, count]) => `${count} × ${status}`).join(", ");
    const ownThread = [shares.alone, shares.beside].map((some) => `${(100 * mean(some)).toFixed(1)} %`);
    lines.push(
      `a small organization, ${rounds * TURNS} turns alone and beside a big one, ${name}: ${compare(alone, beside)}`,
      ...floors.map(({ name: what, answers }) => `beside ${what}: ${compare(alone, answers)}`),
      ...verdicts.map(({ text }) => text),
      `the gateway's own thread: ${ownThread.join(" → ")} of a processor`,
      ...(told === "" ? [] : [`the big one's answers: ${told}`]),
    );
  }
  return { lines, faults };
};

const mean = (numbers: readonly number[]): number =>
  numbers.reduce((sum, one) => sum + one, 0) / numbers.length;

/** Time on a core of a process' first thread, in ms: what a busy machine does not lengthen (schedstat of proc(5)). */
async function ownThreadMs(pid: number): Promise<number> {
  const [onCore] = (await readFile(`/proc/${pid}/schedstat`, "utf8")).split(" ");
  return Number(onCore) / 1e6;
}

function judge(than: string, before: readonly Sent[], beside: readonly Sent[]) {
  const at = (share: number) => [quantile(msOf(before), share), quantile(msOf(beside), share)] as const;
  const [p90, p99] = [at(0.9), at(0.99)];
  const [was, is] = p99;
  const holds = is <= was * MOST_ADDED || is <= was + SCATTER_MS;
  const times = ([one, other]: readonly [number, number]): string => `× ${(other / one).toFixed(2)}`;
  const text = `p90 ${times(p90)}, p99 ${times(p99)} (${(is - was).toFixed(1)} ms more) ${than}: ${holds ? "holds" : "TOO MUCH"}`;
  return { holds, text };
}

const msOf = (answers: readonly Sent[]): readonly number[] => answers.map(({ ms }) => ms);

function compare(alone: readonly Sent[], beside: readonly Sent[]): string {
  const shares = [0.5, 0.9, 0.99].map((share) => {
    const at = (answers: readonly Sent[]): number => quantile(msOf(answers), share);
    const [before, after] = [at(alone), at(beside)];
    return `p${share * 100} ${before.toFixed(1)} → ${after.toFixed(1)} ms (× ${(after / before).toFixed(2)})`;
  });
  return shares.join(", ");
}

/** A flood from a thread of its own, which begins and ends when it is told to. */
function startFlood(workerData: FloodOptions) {
  const worker = new Worker(new URL("./flood.ts", import.meta.url), { workerData });
  return {
    begin: (flood: Flood) => worker.postMessage(flood),
    /** Once all is answered: what was, since it began. */
    async end(): Promise<FloodCounts> {
      const told = once(worker, "message");
      worker.postMessage("end");
      return (await told)[0] as FloodCounts;
    },
    [Symbol.asyncDispose]: async () => void (await worker.terminate()),
  };
}
