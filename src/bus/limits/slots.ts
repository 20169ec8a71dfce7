import { randomUUID } from "node:crypto";
import { luaScript } from "../../lib/lua.ts";
import type { RedisBus } from "../connection/redis.ts";
import { slotsKey } from "../keys.ts";

/** A counting semaphore across all workers. At most `limit` slots are held at the same time. */
export interface Semaphore {
  readonly key: string;
  readonly limit: number;
  /** Whether callers wait in a queue if all slots are taken. The first caller in the queue gets the next free slot reserved. */
  readonly canQueue: boolean;
}

export interface SlotRequest {
  /** Name of the caller. It must be the same for each attempt, because the queue has one place per name. */
  readonly name: string;
  /** Time since when the caller has been waiting, in ms. The caller with the earliest time is served first. */
  readonly sinceMs: number;
  readonly semaphores: readonly Semaphore[];
}

/** A waiting caller, for which a free slot is now reserved. */
export interface SlotReservation {
  readonly name: string;
  readonly sinceMs: number;
}

/** Slots that a caller holds, one for each requested semaphore. The caller must release them. */
export interface Slot {
  /** Aborts if the slots could not be renewed in time, because another caller may then hold them. */
  readonly lost: AbortSignal;
  /**
   * Releases the slots, and returns the waiting callers that may now take them.
   *
   * @throws UnavailableError; the slots then expire later
   */
  readonly release: () => Promise<readonly SlotReservation[]>;
}

/**
 * Result of taking slots. `full` means that `semaphore` had no free slot, so that no slot was taken.
 *
 * `reservations` lists slots that are now reserved for other callers.
 */
export type TakenSlot = { readonly reservations: readonly SlotReservation[] } & (
  | { readonly kind: "taken"; readonly slot: Slot }
  | { readonly kind: "full"; readonly semaphore: Semaphore }
);

export type Slots = ReturnType<typeof createSlots>;

/**
 * Creates counting semaphores in Redis. A freed slot is reserved for a few seconds for the name that has waited longest. The caller that
 * gets the reservation from `take` or `release` must notify that name. When a worker dies, its slots expire by the clock of Redis.
 *
 * @param deps.heldMs time after which the slots of a dead worker expire
 * @param deps.reservedMs how long a freed slot stays reserved
 */
export function createSlots({
  redis,
  heldMs = 15_000,
  reservedMs = 3_000,
}: {
  readonly redis: RedisBus;
  readonly heldMs?: number;
  readonly reservedMs?: number;
}) {
  const runTake = luaScript(redis, new URL("./slots-take.lua", import.meta.url));
  const runRenew = luaScript(redis, new URL("./slots-renew.lua", import.meta.url));
  const runRelease = luaScript(redis, new URL("./slots-release.lua", import.meta.url));

  function hold(token: string, keys: readonly string[], limits: readonly number[]): Slot {
    const lost = new AbortController();
    let renewedAtMs = performance.now();
    const timer = setInterval(() => {
      const startedAtMs = performance.now();
      if (startedAtMs - renewedAtMs > heldMs) return lose();
      runRenew(keys, [token, heldMs]).then(
        (held) => {
          if (held === 1) renewedAtMs = startedAtMs;
          else lose();
        },
        // Ignore the error, because a later renewal may succeed before the slots expire.
        () => {},
      );
    }, heldMs / 3);
    const lose = (): void => {
      clearInterval(timer);
      lost.abort(new Error("The slot could not be renewed in time."));
    };
    return {
      lost: lost.signal,
      async release() {
        clearInterval(timer);
        return parseReservations(await runRelease(keys, [token, reservedMs, ...limits]));
      },
    };
  }

  return {
    /**
     * Takes one slot from each of the semaphores, or no slot at all.
     *
     * @throws UnavailableError
     */
    async take({ name, sinceMs, semaphores }: SlotRequest): Promise<TakenSlot> {
      const token = randomUUID();
      const keys = semaphores.map(({ key }) => slotsKey(key));
      const limits = semaphores.map(({ limit }) => limit);
      const bounds = semaphores.flatMap(({ limit, canQueue }) => [limit, canQueue ? 1 : 0]);
      const reply = await runTake(keys, [token, name, sinceMs, heldMs, reservedMs, ...bounds]);
      const [full, ...rest] = reply as [number, ...string[]];
      const semaphore = semaphores[full - 1];
      const reservations = parseReservations(rest);
      return semaphore === undefined
        ? { kind: "taken", slot: hold(token, keys, limits), reservations }
        : { kind: "full", semaphore, reservations };
    },
  };
}

function parseReservations(reply: unknown): readonly SlotReservation[] {
  const parts = reply as readonly string[];
  return parts.flatMap((name, i) => (i % 2 ? [] : [{ name, sinceMs: Number(parts[i + 1]) }]));
}
