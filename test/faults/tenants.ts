import { setTimeout as delay } from "node:timers/promises";
import { startGatewayProcess } from "../support/gateway-process.ts";
import { startSharedStores } from "../support/stores.ts";
import { startStreamServer } from "../support/stream-server.ts";
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
const WATCH_MS = 15_000;

/**
 * One organization sends ten times what its limit lets through, and has a stream that never pauses; another one sends a little. None
 * of that little is refused. How much longer its answers take is told, and judged by a person: it depends on the machine.
 */
export const tenants: Rig = async ({ rounds }) => {
  await using stores = await startSharedStores();
  await using flood = await startStreamServer();
  await using gateway = await startGatewayProcess({
    ...stores.env,
    INLET_HOOK_REQUESTS_PER_SECOND: String(LIMIT),
    INLET_SOURCE_DELIVERIES_PER_SECOND: String(LIMIT),
    INLET_ALLOW_NETWORKS: "127.0.0.0/8",
    INLET_LOG_LEVEL: "error",
  });
  const events = [{ type: "made", idPath: "$.id" }];
  const big = await createTenant(gateway, "Big");
  const stream = { url: flood.url, run: "always", reconnect: { initialMs: 100 } };
  const [bigPath] = await big.install([
    { uid: "in", kind: "webhook", events },
    { uid: "stream", kind: "sse", config: stream, events: [{ type: "made" }] },
  ]);
  const [smallPath] = await (await createTenant(gateway, "Small")).install([
    { uid: "in", kind: "webhook", events },
  ]);

  let sent = 0;
  const text = "x".repeat(400);
  async function watch(): Promise<readonly Sent[]> {
    const answers: Promise<Sent>[] = [];
    for (let n = 0; n < WATCH_MS / SMALL_EVERY_MS; n++) {
      answers.push(post(`${gateway.origin}${smallPath}`, { id: `small-${++sent}`, text }));
      await delay(SMALL_EVERY_MS);
    }
    return Promise.all(answers);
  }

  const lines: string[] = [];
  const faults: string[] = [];
  const tell = (answers: readonly Sent[]): string =>
    [0.5, 0.99]
      .map(
        (share) =>
          `${quantile(
            answers.map(({ ms }) => ms),
            share,
          ).toFixed(0)} ms`,
      )
      .join(" and ");
  for (let round = 0; round < rounds; round++) {
    const alone = await watch();
    const stop = new AbortController();
    const bigAnswers = new Map<number, number>();
    const inFlight = new Set<Promise<void>>();
    const load = (async () => {
      for (let due = performance.now(); !stop.signal.aborted; due += BIG_EVERY_MS) {
        const sending = post(`${gateway.origin}${bigPath}`, { id: `big-${++sent}`, text })
          .then(({ status }) => void bigAnswers.set(status, (bigAnswers.get(status) ?? 0) + 1))
          .finally(() => inFlight.delete(sending));
        inFlight.add(sending);
        await delay(Math.max(0, due - performance.now()));
        while (inFlight.size > MOST_IN_FLIGHT) await Promise.race(inFlight);
      }
    })();
    const feeding = setInterval(() => flood.make(500), 100);
    const beside = await watch();
    clearInterval(feeding);
    stop.abort();
    await load;
    await Promise.all(inFlight);
    const refused = [...alone, ...beside].filter(({ status }) => status !== 200);
    if (refused.length > 0)
      faults.push(
        `${refused.length} deliveries of the small organization were refused: ${refused[0]?.status}`,
      );
    if (!bigAnswers.has(429)) faults.push("the big organization has not met its limit: nothing was shown");
    lines.push(
      `a small organization's p50 and p99: alone ${tell(alone)}, beside a big one ${tell(beside)}`,
      `the big one's answers: ${[...bigAnswers].map(([status, count]) => `${count} × ${status}`).join(", ")}`,
    );
  }
  return { lines, faults };
};
