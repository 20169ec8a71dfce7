import { randomUUID } from "node:crypto";
import { luaScript } from "../../lib/lua.ts";
import type { RedisBus } from "../connection/redis.ts";
import { slotsKey } from "../keys.ts";

/** Something of which only so many may be under way at once, over all workers. */
export interface Semaphore {
  /** Names it among all; any text. */
  readonly key: string;
  readonly limit: number;
  /** A request that finds it full gets in line, and is told of its turn. */
  readonly canQueue: boolean;
}

export interface SlotRequest {
  /** Who asks, the same each time: one of a name is in line. */
  readonly name: string;
  /** The line goes by it: the oldest first. */
  readonly sinceMs: number;
  readonly semaphores: readonly Semaphore[];
}

/** One in line for whom a slot is kept now. */
export interface SlotReservation {
  readonly name: string;
  readonly sinceMs: number;
}

/** A slot of each place; its taker releases it. */
export interface Slot {
  /** Aborts when it may be another's: it could not be renewed in time. */
  readonly lost: AbortSignal;
  /** Answers the next in line. @throws UnavailableError: then it comes free when it runs out. */
  readonly release: () => Promise<readonly SlotReservation[]>;
}

/** `full`: `place` is, and none is taken. `turns` are others whose turn it is now. */
export type TakenSlot = { readonly turns: readonly SlotReservation[] } & (
  | { readonly kind: "taken"; readonly slot: Slot }
  | { readonly kind: "full"; readonly place: Semaphore }
);

export type Slots = ReturnType<typeof createSlots>;

/**
 * Counting semaphores in Redis. A slot that comes free is kept a few seconds for the name that has waited longest; that one need
 * only be told. A holder's slots come back by themselves when its worker dies, by Redis' own clock.
 *
 * @param deps.heldMs how long a worker that died keeps its slots
 * @param deps.keptMs how long a slot is kept for the next in line
 */
export function createSlots({
  redis,
  heldMs = 15_000,
  keptMs = 3_000,
}: {
  readonly redis: RedisBus;
  readonly heldMs?: number;
  readonly keptMs?: number;
}) {
  const runTake = luaScript(redis, new URL("./slots-take.lua", import.meta.url));
  const runRenew = luaScript(redis, new URL("./slots-renew.lua", import.meta.url));
  const runRelease = luaScript(redis, new URL("./slots-release.lua", import.meta.url));

  function hold(token: string, keys: readonly string[], limits: readonly number[]): Slot {
    const lost = new AbortController();
    let renewedAtMs = performance.now();
    const timer = setInterval(() => {
      const askedAtMs = performance.now();
      if (askedAtMs - renewedAtMs > heldMs) return lose();
      runRenew(keys, [token, heldMs]).then(
        (held) => {
          if (held === 1) renewedAtMs = askedAtMs;
          else lose();
        },
        // Redis is away: it may be back before the slot has run out.
        () => {},
      );
    }, heldMs / 3);
    const lose = (): void => {
      clearInterval(timer);
      lost.abort(new Error("the slot could not be renewed in time"));
    };
    return {
      lost: lost.signal,
      async release() {
        clearInterval(timer);
        return parseReservations(await runRelease(keys, [token, keptMs, ...limits]));
      },
    };
  }

  return {
    /** A slot of each of the places, or of none. @throws UnavailableError */
    async take({ name, sinceMs, semaphores: places }: SlotRequest): Promise<TakenSlot> {
      const token = randomUUID();
      const keys = places.map(({ key }) => slotsKey(key));
      const limits = places.map(({ limit }) => limit);
      const bounds = places.flatMap(({ limit, canQueue: waits }) => [limit, waits ? 1 : 0]);
      const reply = await runTake(keys, [token, name, sinceMs, heldMs, keptMs, ...bounds]);
      const [full, ...rest] = reply as [number, ...string[]];
      const place = places[full - 1];
      const turns = parseReservations(rest);
      return place === undefined
        ? { kind: "taken", slot: hold(token, keys, limits), turns }
        : { kind: "full", place, turns };
    },
  };
}

function parseReservations(reply: unknown): readonly SlotReservation[] {
  const parts = reply as readonly string[];
  return parts.flatMap((name, i) => (i % 2 ? [] : [{ name, sinceMs: Number(parts[i + 1]) }]));
}
