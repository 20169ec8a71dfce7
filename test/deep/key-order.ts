import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { makeSubscription, startTestRedis } from "../consumer/support.ts";
import { channelOf, installApp } from "../support/channels.ts";
import type { GatewayProcess } from "../support/gateway-process.ts";
import { until } from "../support/until.ts";
import type { KillSite } from "./handler-kills.ts";

/** Result of a run in which workers are killed. */
export interface KeyOrder {
  readonly events: number;
  readonly kills: number;
  readonly attempts: number;
  /** Events that started before an earlier event of their key had succeeded or was a dead letter. */
  readonly outOfOrder: readonly string[];
  /** Events that neither succeeded nor became dead letters. */
  readonly lost: readonly string[];
}

interface Step {
  readonly place: string;
  readonly n: number;
  readonly isDone: boolean;
}

/** @param isDead whether an event has become a dead letter; its key continues after its last attempt */
function judge(
  steps: readonly Step[],
  places: readonly string[],
  keyed: { readonly events: number; readonly keyOf: (n: number) => number },
  isDead: (place: string, n: number) => boolean,
): Pick<KeyOrder, "attempts" | "outOfOrder" | "lost"> {
  const { events, keyOf } = keyed;
  const done = new Set<string>();
  /** The latest event of each key that has started. */
  const latest = new Map<string, number>();
  const outOfOrder: string[] = [];
  for (const { place, n, isDone } of steps) {
    if (isDone) done.add(`${place} ${n}`);
    else {
      for (let before = 0; before < n; before++) {
        if (keyOf(before) !== keyOf(n) || done.has(`${place} ${before}`) || isDead(place, before)) continue;
        outOfOrder.push(`${place} ${n} before ${before}`);
      }
      // An event that succeeded may be repeated, if its worker was killed before the acknowledgement.
      const started = latest.get(`${place} ${keyOf(n)}`) ?? -1;
      if (n < started && !done.has(`${place} ${n}`)) outOfOrder.push(`${place} ${n} after ${started}`);
      latest.set(`${place} ${keyOf(n)}`, Math.max(n, started));
    }
  }
  const lost = places.flatMap((place) =>
    Array.from({ length: events }, (_, n) => n)
      .filter((n) => !done.has(`${place} ${n}`) && !isDead(place, n))
      .map((n) => `${place} ${n}`),
  );
  return { attempts: steps.filter(({ isDone }) => !isDone).length, outOfOrder, lost };
}

/** The parts of a CloudEvent in a batch that the handler uses. */
interface BatchedEvent {
  readonly type: string;
  readonly source: string;
  readonly id: string;
  readonly data: { readonly n: number };
}

const WORKERS = 4;

/** Kills readers with `ordered: "key"`, one after the other, while some events of some keys always fail. */
export async function killReaders({ kills, events }: { kills: number; events: number }): Promise<KeyOrder> {
  await using server = await startTestRedis();
  const subscription = await makeSubscription(server, 6);
  const keyOf = (n: number): number => n % 20;
  const broken = Array.from({ length: events }, (_, n) => n).filter((n) => n % 100 === 3);
  const steps: Step[] = [];
  const options = {
    ...{ redis: server.url, subscription: subscription.id, ordered: "key", concurrency: 8 },
    ...{ deadAfterMs: 1_000, maxAttempts: 6, retry: { initialMs: 50, maxMs: 200 } },
  };
  async function startReader(): Promise<ChildProcess> {
    const script = join(import.meta.dirname, "key-reader.ts");
    const child = spawn(process.execPath, [script, JSON.stringify(options), JSON.stringify(broken)], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const ready = Promise.withResolvers<void>();
    createInterface(child.stdout).on("line", (line) => {
      const [place = "", n, state] = line.split(" ");
      if (state === undefined) ready.resolve();
      else steps.push({ place, n: Number(n), isDone: state === "done" });
    });
    await ready.promise;
    return child;
  }
  const kill = async (child: ChildProcess): Promise<void> => {
    child.kill("SIGKILL");
    await once(child, "exit");
  };
  const readers = await Promise.all(Array.from({ length: WORKERS }, startReader));
  try {
    const perKill = Math.ceil(events / (kills + 1));
    for (let from = 0; from < events; from += perKill) {
      const before = steps.length;
      for (const topic of subscription.topics)
        await subscription.send(topic, from, Math.min(events, from + perKill), (n) => `k${keyOf(n)}`);
      await until(() => steps.length > before + perKill);
      if (from + perKill >= events) break;
      const [victim] = readers.splice(0, 1);
      if (victim !== undefined) await kill(victim);
      readers.push(await startReader());
    }
    await until(async () => (await subscription.pending()) === 0 && steps.length >= events, {
      ceilingMs: 120_000,
    });
    const dead = new Set((await subscription.dead()).map(({ id = "" }) => id.split("#").join(" ")));
    const isDead = (place: string, n: number): boolean => dead.has(`${place} ${n}`);
    const judged = judge(steps, subscription.topics, { events, keyOf }, isDead);
    return { events: events * subscription.topics.length, kills, ...judged };
  } finally {
    await Promise.all(readers.map(kill));
  }
}

/**
 * Kills gateways that deliver to a handler with `ordered: "key"`, one after the other, while the first attempts at some events fail.
 *
 * @param settings settings of the handler
 */
export async function killGateways(
  { handler, startVictim, stores }: KillSite,
  { kills, events, path, settings }: { kills: number; events: number; path: string; settings: object },
): Promise<KeyOrder> {
  const types = ["a", "b", "c", "d", "e", "f"];
  const keyOf = (n: number): number => n % 10;
  const steps: Step[] = [];
  const tries = new Map<string, number>();
  /** Handles an event. Returns false if it fails, which happens in its first two attempts. */
  const handle = (place: string, n: number): boolean => {
    steps.push({ place, n, isDone: false });
    const count = (tries.get(`${place} ${n}`) ?? 0) + 1;
    tries.set(`${place} ${n}`, count);
    if (n % 7 === 3 && count < 3) return false;
    steps.push({ place, n, isDone: true });
    return true;
  };
  handler.answers.set(path, ({ body, headers }, times) => {
    const parsed = JSON.parse(body) as { readonly n: number } | readonly BatchedEvent[];
    if (!Array.isArray(parsed)) {
      if (handle(String(headers["ce-type"]), (parsed as { readonly n: number }).n)) return { status: 200 };
      return times === 1 ? { status: 500 } : "cut";
    }
    const failed: { readonly source: string; readonly id: string }[] = [];
    const failedKeys = new Set<string>();
    for (const { type, source, id, data } of parsed as readonly BatchedEvent[]) {
      const key = `${type} ${keyOf(data.n)}`;
      if (failedKeys.has(key) || handle(type, data.n)) continue;
      failedKeys.add(key);
      failed.push({ source, id });
    }
    return { status: 200, body: JSON.stringify({ failed }) };
  });
  const gateways = await Promise.all(Array.from({ length: WORKERS }, startVictim));
  const stopped: Promise<unknown>[] = [];
  const end = (gateway: GatewayProcess): void => {
    gateway.kill("SIGKILL");
    stopped.push(gateway.exited);
  };
  try {
    const [first] = gateways;
    if (first === undefined) throw new Error("no gateway has started");
    const definitions = types.map((type) => ({
      ...{ type, typePath: "$.type", idPath: "$.id", keyPath: "$.key" },
    }));
    const app = await installApp(first, [{ uid: "main", kind: "webhook", events: definitions }]);
    const { topics, id } = await first.api<{ id: string; topics: string[] }>(
      "POST",
      `/apps/${app.id}/events/subscribe`,
      { eventUid: "*", handler: { url: handler.urlOf(path), timeoutMs: 1_000, ...settings } },
    );
    const send = async (type: string, n: number): Promise<void> => {
      const body = JSON.stringify({ type, id: `${type}${n}`, n, key: `k${keyOf(n)}` });
      const headers = { "content-type": "application/json" };
      for (let tries = 0; ; tries++) {
        const { origin } = gateways[tries % gateways.length] ?? first;
        const url = `${origin}/hooks/${channelOf(app).id}`;
        const response = await fetch(url, { method: "POST", headers, body }).catch(() => undefined);
        if (response?.status === 200) return;
        await delay(20);
      }
    };
    const perKill = Math.ceil(events / (kills + 1));
    for (let n = 0; n < events; n++) {
      for (const type of types) await send(type, n);
      if (n % perKill !== perKill - 1 || n === events - 1) continue;
      const [victim] = gateways.splice(0, 1);
      if (victim !== undefined) end(victim);
      gateways.push(await startVictim());
    }
    const pending = async (): Promise<number> => {
      const counts = await Promise.all(topics.map((topic) => stores.client.xpending(topic, id)));
      return counts.reduce((sum, [count]) => sum + Number(count), 0);
    };
    const done = (): number =>
      new Set(steps.filter(({ isDone }) => isDone).map(({ place, n }) => `${place} ${n}`)).size;
    await until(async () => done() >= events * types.length && (await pending()) === 0, {
      ceilingMs: 240_000,
    });
    const judged = judge(steps, types, { events, keyOf }, () => false);
    return { events: events * types.length, kills, ...judged };
  } finally {
    for (const gateway of gateways) end(gateway);
    await Promise.all(stopped);
  }
}
