import { setTimeout as delay } from "node:timers/promises";
import { startGatewayProcess } from "../support/gateway-process.ts";
import { startSharedStores } from "../support/stores.ts";
import type { Rig } from "./rig.ts";
import { createTenant, post } from "./tenants.ts";

const MIB = 1024 * 1024;
const REDIS_MIB = 96;
/** Together they may hold half as much again as Redis has: a quarter each. */
const BIG = 6;
const EVENT = { text: "x".repeat(60 * 1024) };
/** Below the part of the memory from which organizations wait for each other. */
const FILLED_AT_ONCE = 0.7;
/** Of all big ones together 400 KiB a second: what comes in before anyone is told to wait is not to fill Redis. */
const BIG_EVERY_MS = 900;
const SMALL_EVERY_MS = 100;

const ALARM = 0.85;

const hasRefused = (counts: ReadonlyMap<number, number>): boolean =>
  [...counts.keys()].some((status) => status !== 200);

const told = (counts: ReadonlyMap<number, number>): string =>
  [...counts].map(([status, count]) => `${count} × ${status}`).join(", ");

/**
 * Many organizations that nobody reads fill a small Redis, each within its own limit. They are told to wait (429) before it is full;
 * another one, which holds little, is taken all the while.
 */
export const nearlyFull: Rig = async ({ rounds }) => {
  const faults: string[] = [];
  const lines: string[] = [];
  for (let round = 0; round < rounds; round++) {
    await using stores = await startSharedStores(["--maxmemory", `${REDIS_MIB}mb`]);
    await using gateway = await startGatewayProcess({ ...stores.env, INLET_LOG_LEVEL: "error" });
    const channel = { uid: "in", kind: "webhook", events: [{ type: "made" }] };
    const urls: string[] = [];
    for (let n = 0; n <= BIG; n++) {
      const [path] = await (await createTenant(gateway, `Tenant ${n}`)).install([channel]);
      urls.push(`${gateway.origin}${path}`);
    }
    const [small = "", ...big] = urls;
    const answers = { small: new Map<number, number>(), big: new Map<number, number>() };
    const send = async (who: keyof typeof answers, url: string, body: object): Promise<number> => {
      const { status } = await post(url, body);
      answers[who].set(status, (answers[who].get(status) ?? 0) + 1);
      return status;
    };
    const used = async (): Promise<number> => {
      const infos = await Promise.all(stores.servers.map(({ client }) => client.info("memory")));
      return Math.max(
        ...infos.map((text) => Number(/^used_memory:(\d+)/m.exec(text)?.[1]) / MIB / REDIS_MIB),
      );
    };

    while ((await used()) < FILLED_AT_ONCE && !hasRefused(answers.big))
      for (const url of big) await send("big", url, EVENT);
    if (hasRefused(answers.big)) faults.push(`told to wait before anything is full: ${told(answers.big)}`);
    const isOver = new AbortController();
    let fullest = 0;
    const watching = (async () => {
      while (!isOver.signal.aborted) {
        await send("small", small, { text: "a little" });
        fullest = Math.max(fullest, await used());
        await delay(SMALL_EVERY_MS);
      }
    })();
    await Promise.all(
      big.map(async (url) => {
        while ((await send("big", url, EVENT)) === 200) await delay(BIG_EVERY_MS);
      }),
    );
    isOver.abort();
    await watching;

    if (fullest < ALARM) faults.push(`told to wait at ${(100 * fullest).toFixed(0)} % already`);
    if (answers.small.size !== 1 || !answers.small.has(200))
      faults.push(`the one that holds little was answered ${told(answers.small)}`);
    if ([...answers.big.keys()].some((status) => status !== 200 && status !== 429))
      faults.push(`those that hold much were answered ${told(answers.big)}`);
    lines.push(
      `${BIG} organizations on a Redis of ${REDIS_MIB} MiB: ${told(answers.big)}; Redis at ${(100 * fullest).toFixed(0)} % at most`,
      `another, which holds little: ${told(answers.small)}`,
    );
  }
  return { lines, faults };
};
