import { UnavailableError } from "../../lib/errors.ts";
import type { RedisCaller } from "../connection/general-connection.ts";
import { loadScript, runScript } from "../scripts.ts";

/** How much was counted in a window, and when that ends. */
export interface RateCount {
  readonly counted: number;
  readonly endsInMs: number;
}

/** Adds to a counter that all gateways share. @throws UnavailableError */
export type CountRate = (key: string, points: number, windowSeconds: number) => Promise<RateCount>;

/** A request must not wait for its counter for long. */
const PATIENCE_MS = 300;
const REST_MS = 1_000;

/**
 * Counts in Redis. When Redis is away or slow it is left alone for a second: only one request of that second
 * finds out whether it is back, the others are told at once.
 */
export function createRateCounter({ redis }: { readonly redis: RedisCaller }): CountRate {
  const script = loadScript(new URL("./rate-count.lua", import.meta.url));
  let restsUntilMs = 0;
  let failing = false;

  return async (key, points, windowSeconds) => {
    const nowMs = performance.now();
    if (nowMs < restsUntilMs) throw new UnavailableError("Redis is not asked for counters just now");
    if (failing) restsUntilMs = nowMs + REST_MS;
    try {
      const reply = await inTime(runScript(redis, script, [key], [points, windowSeconds]));
      failing = false;
      restsUntilMs = 0;
      const [counted, endsInMs] = reply as [number, number];
      return { counted, endsInMs };
    } catch (error) {
      failing = true;
      restsUntilMs = performance.now() + REST_MS;
      throw error;
    }
  };
}

async function inTime<T>(promise: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => reject(new UnavailableError(`Redis has not counted within ${PATIENCE_MS} ms`)),
    PATIENCE_MS,
  );
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
