import { parseJson } from "../../event/parse-json.ts";
import { startLoop } from "../../lib/loop.ts";
import { luaScript } from "../../lib/lua.ts";
import type { Log } from "../../log.ts";
import type { RedisBus } from "../connection/redis.ts";
import { OVER_LIMIT_KEY } from "../keys.ts";

const READ_EVERY_MS = 2_000;

/**
 * Returns a function that publishes to all gateways which organizations exceed their topic storage limit. The list expires after
 * `ttlMs`.
 *
 * @throws UnavailableError
 */
export function createWriteOverLimit(redis: RedisBus) {
  const runLua = luaScript(redis, new URL("./over-limit.lua", import.meta.url));
  return async (organizationIds: readonly string[], ttlMs: number): Promise<void> => {
    if (organizationIds.length === 0) await redis.call("del", [OVER_LIMIT_KEY]);
    else await runLua([OVER_LIMIT_KEY], [JSON.stringify(organizationIds), ttlMs]);
  };
}

/** Organizations that exceed their topic storage limit. While Redis is unreachable, the last known list applies. */
export interface OverLimit extends AsyncDisposable {
  readonly has: (organizationId: string) => boolean;
  readonly count: () => number;
}

/**
 * Starts reading which organizations exceed their storage limit. Resolves after the first read, so that the limit applies from the
 * first delivery.
 *
 * A failed first read does no harm, because Redis then accepts no events anyway.
 */
export async function startOverLimit(deps: {
  readonly redis: RedisBus;
  readonly log: Log;
  readonly everyMs?: number;
}): Promise<OverLimit> {
  const { redis, log, everyMs = READ_EVERY_MS } = deps;
  let over: ReadonlySet<string> = new Set();
  async function read(): Promise<void> {
    const text = (await redis.call("get", [OVER_LIMIT_KEY])) as string | null;
    over = new Set(text === null ? [] : (parseJson(text) as readonly string[]));
  }

  const isRead = await read().then(
    () => true,
    () => false,
  );
  const loop = startLoop({
    everyMs,
    step: read,
    waitsFirst: isRead,
    onFailing: (err) =>
      log.debug(
        { event: "storage.limits_not_read", err },
        "reading the organizations over their topic storage limit failed",
      ),
  });
  return {
    has: (organizationId) => over.has(organizationId),
    count: () => over.size,
    [Symbol.asyncDispose]: () => loop[Symbol.asyncDispose](),
  };
}
