import { luaScript } from "../../lib/lua.ts";
import { mapBounded } from "../../lib/map-bounded.ts";
import { markerKey } from "../keys.ts";
import type { RedisBus } from "./redis.ts";

/** Result of a check of the markers. */
export interface MarkerReading {
  /** Id of the markers. `undefined` if one is missing, or if they differ. */
  readonly id: string | undefined;
  /** Time by which the markers are older than at the last check of this process, in ms. 0 if they are not older. */
  readonly lostMs: number;
}

export type RedisMarker = ReturnType<typeof createRedisMarker>;

/** Number of markers in a Cluster. With so many, practically every master has one. */
const IN_CLUSTER = 64;
const CONCURRENCY = 8;

/**
 * Markers that reveal data loss. A Redis that was emptied or replaced has no marker or another one. A Redis that went back to an older
 * snapshot has a marker with an older time than this process has seen.
 *
 * All methods throw UnavailableError.
 */
export function createRedisMarker({ redis }: { readonly redis: Pick<RedisBus, "call" | "isCluster"> }) {
  const runLua = luaScript(redis, new URL("./redis-marker.lua", import.meta.url));
  const keys = Array.from({ length: redis.isCluster ? IN_CLUSTER : 1 }, (_, index) => markerKey(index));
  /** Marker by key, as this process last read or wrote it. */
  const written = new Map<string, { readonly id: string; readonly atMs: number }>();

  async function run(newId: string, movesTime: boolean): Promise<MarkerReading> {
    const readings = await mapBounded(keys, CONCURRENCY, async (key) => {
      const known = written.get(key);
      const reply = await runLua([key], [newId, movesTime ? "1" : "0"]);
      const [id, beforeMs, atMs] = reply as [string, number, number];
      written.set(key, { id, atMs });
      return { id, lostMs: known?.id === id ? Math.max(0, known.atMs - beforeMs) : 0 };
    });
    const [first] = readings;
    const isSame = readings.every(({ id }) => id !== "" && id === first?.id);
    return {
      id: isSame ? first?.id : undefined,
      lostMs: newId === "" ? Math.max(...readings.map(({ lostMs }) => lostMs)) : 0,
    };
  }

  return {
    /**
     * Reads the markers.
     *
     * @param movesTime whether to move their times forward. False in the first check of a process, which has nothing to compare with: it
     *   would hide a step back from the other processes.
     */
    check: (movesTime: boolean): Promise<MarkerReading> => run("", movesTime),
    async replace(id: string): Promise<void> {
      await run(id, true);
    },
  };
}
