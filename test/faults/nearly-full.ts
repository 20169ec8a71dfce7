import { setTimeout as delay } from "node:timers/promises";
import { startGatewayProcess } from "../support/gateway-process.ts";
import { startSharedStores } from "../support/stores.ts";
import type { Rig } from "./rig.ts";
import { createTenant, post } from "./tenants.ts";

const MIB = 1024 * 1024;
const REDIS_MIB = 96;
/** Number of large organizations. Each may use a quarter of Redis, so together they may use 150 %. */
const BIG = 6;
const EVENT = { text: "x".repeat(60 * 1024) };
/**
 * Fill level of the first phase, as a fraction of the memory. Organizations share the remaining memory only
 * from a higher level.
 */
const FILLED_AT_ONCE = 0.7;
/**
 * Interval of a large organization's events. In total the large ones send 400 KiB per second, so a 429
 * comes before Redis is full.
 */
const BIG_EVERY_MS = 900;
const SMALL_EVERY_MS = 100;

const ALARM = 0.85;

const hasRejected = (counts: ReadonlyMap<number, number>): boolean =>
  [...counts.keys()].some((status) => status !== 200);

const formatCounts = (counts: ReadonlyMap<number, number>): string =>
  [...counts].map(([status, count]) => `${count} × ${status}`).join(", ");

/**
 * Several organizations without readers fill a small Redis, each within its own limit. They must get 429 responses before Redis is
 * full. Deliveries of another organization that stores little must always be accepted.
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
    const send = async (size: keyof typeof answers, url: string, body: object): Promise<number> => {
      const { status } = await post(url, body);
      answers[size].set(status, (answers[size].get(status) ?? 0) + 1);
      return status;
    };
    const used = async (): Promise<number> => {
      const infos = await Promise.all(stores.servers.map(({ client }) => client.info("memory")));
      return Math.max(
        ...infos.map((text) => Number(/^used_memory:(\d+)/m.exec(text)?.[1]) / MIB / REDIS_MIB),
      );
    };

    while ((await used()) < FILLED_AT_ONCE && !hasRejected(answers.big))
      for (const url of big) await send("big", url, EVENT);
    if (hasRejected(answers.big))
      faults.push(`organizations were rejected before Redis was nearly full: ${formatCounts(answers.big)}`);
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

    if (fullest < ALARM)
      faults.push(`organizations were rejected at only ${(100 * fullest).toFixed(0)} % of the memory`);
    if (answers.small.size !== 1 || !answers.small.has(200))
      faults.push(`responses to the small organization: ${formatCounts(answers.small)}`);
    if ([...answers.big.keys()].some((status) => status !== 200 && status !== 429))
      faults.push(`responses to the large organizations: ${formatCounts(answers.big)}`);
    lines.push(
      `${BIG} organizations on a Redis of ${REDIS_MIB} MiB: ${formatCounts(answers.big)}; Redis at ${(100 * fullest).toFixed(0)} % at most`,
      `small organization: ${formatCounts(answers.small)}`,
    );
  }
  return { lines, faults };
};
