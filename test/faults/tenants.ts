import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { startGatewayProcess } from "../support/gateway-process.ts";
import { startSharedStores } from "../support/stores.ts";
import { startStreamServer } from "../support/stream-server.ts";
import type { FloodCounts, FloodOptions } from "./flood.ts";
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
/** Ten times the limit, however long an answer takes. */
const BIG_EVERY_MS = 1_000 / (10 * LIMIT);
const MOST_IN_FLIGHT = 500;
const SMALL_EVERY_MS = 50;
/** The two are compared in turns: what else the machine does then slows down both. */
const TURNS = 6;
const TURN_MS = 3_000;
/** What comes right after a change of turns belongs to neither. */
const SETTLE_MS = 500;

/**
 * One organization sends ten times what its limit lets through, and has a stream that never pauses; another one sends a little. None
 * of that little is refused. How much longer its answers take is told, and judged by a person: it depends on the machine.
 */
export const tenants: Rig = async ({ rounds }) => {
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
  const [bigPath] = await big.install([
    { uid: "in", kind: "webhook", events },
    { uid: "stream", kind: "sse", config: stream, events: [{ type: "made" }] },
  ]);
  const [smallPath] = await (await createTenant(gateway, "Small")).install([
    { uid: "in", kind: "webhook", events },
  ]);
  await using flood = startFlood({
    url: `${gateway.origin}${bigPath}`,
    everyMs: BIG_EVERY_MS,
    mostInFlight: MOST_IN_FLIGHT,
  });

  let sent = 0;
  const text = "x".repeat(400);
  async function watch(): Promise<readonly Sent[]> {
    await delay(SETTLE_MS);
    const answers: Promise<Sent>[] = [];
    for (let n = 0; n < TURN_MS / SMALL_EVERY_MS; n++) {
      answers.push(post(`${gateway.origin}${smallPath}`, { id: `small-${++sent}`, text }));
      await delay(SMALL_EVERY_MS);
    }
    return Promise.all(answers);
  }

  const lines: string[] = [];
  const faults: string[] = [];
  for (let round = 0; round < rounds; round++) {
    const [alone, beside]: [Sent[], Sent[]] = [[], []];
    let bigAnswers: FloodCounts = new Map();
    for (let turn = 0; turn < TURNS; turn++) {
      alone.push(...(await watch()));
      flood.begin();
      const feeding = setInterval(() => feed.make(LIMIT), 100);
      beside.push(...(await watch()));
      clearInterval(feeding);
      bigAnswers = await flood.end();
    }
    const refused = [...alone, ...beside].filter(({ status }) => status !== 200);
    if (refused.length > 0)
      faults.push(
        `${refused.length} deliveries of the small organization were refused: ${refused[0]?.status}`,
      );
    if (!bigAnswers.has(429)) faults.push("the big organization has not met its limit: nothing was shown");
    const compared = [0.5, 0.9, 0.99].map((share) => {
      const [before, after] = [alone, beside].map((answers) =>
        quantile(
          answers.map(({ ms }) => ms),
          share,
        ),
      ) as [number, number];
      return `p${share * 100} ${before.toFixed(1)} → ${after.toFixed(1)} ms (× ${(after / before).toFixed(2)})`;
    });
    lines.push(
      `a small organization, ${TURNS} turns alone and beside a big one: ${compared.join(", ")}`,
      `the big one's answers: ${[...bigAnswers].map(([status, count]) => `${count} × ${status}`).join(", ")}`,
    );
  }
  return { lines, faults };
};

/** A flood from a thread of its own, which begins and ends when it is told to. */
function startFlood(workerData: FloodOptions) {
  const worker = new Worker(new URL("./flood.ts", import.meta.url), { workerData });
  return {
    begin: () => worker.postMessage("begin"),
    /** Once all is answered: what was, from the beginning on. */
    async end(): Promise<FloodCounts> {
      const told = once(worker, "message");
      worker.postMessage("end");
      return (await told)[0] as FloodCounts;
    },
    [Symbol.asyncDispose]: async () => void (await worker.terminate()),
  };
}
