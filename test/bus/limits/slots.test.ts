import { afterEach, describe, expect, it, vi } from "vitest";
import {
  createSlots,
  type Semaphore,
  type Slot,
  type SlotReservation,
  type Slots,
  type TakenSlot,
} from "../../../src/bus/limits/slots.ts";
import { opened } from "../../support/opened.ts";
import { startRedis } from "../../support/redis.ts";
import { until } from "../../support/until.ts";
import { LONG_WRITE_TIMEOUT, openedBus, openTestRedis } from "../support.ts";

const { server, redis } = openedBus();
const otherRedis = opened(() => openTestRedis(server.url, LONG_WRITE_TIMEOUT));

afterEach(() => void vi.useRealTimers());

const semaphore = (key: string, limit: number, canQueue = true): Semaphore => ({ key, limit, canQueue });

const names = (reservations: readonly SlotReservation[]) => reservations.map(({ name }) => name);

const HOUR_MS = 3_600_000;
/** Durations that do not expire during a test. */
const longLived = { heldMs: HOUR_MS, reservedMs: HOUR_MS };

let since = 0;
/** Requests slots with an increasing `sinceMs`, so later requests queue behind earlier ones. */
const ask = (slots: Slots, name: string, ...semaphores: Semaphore[]): Promise<TakenSlot> =>
  slots.take({ name, sinceMs: ++since, semaphores });

async function take(slots: Slots, name: string, ...semaphores: Semaphore[]): Promise<Slot> {
  const answer = await ask(slots, name, ...semaphores);
  if (answer.kind !== "taken") throw new Error(`${answer.semaphore.key} is full`);
  return answer.slot;
}

describe("slots of a Redis semaphore", () => {
  it("are limited across all workers and become free when released", async () => {
    const [one, other] = [
      createSlots({ redis, ...longLived }),
      createSlots({ redis: otherRedis, ...longLived }),
    ];
    const origin = semaphore("many", 2, false);
    const held = await take(one, "a", origin);
    await using _ = { [Symbol.asyncDispose]: async () => void (await held.release().catch(() => {})) };
    const second = await take(other, "b", origin);
    expect((await ask(one, "c", origin)).kind).toBe("full");
    expect((await ask(other, "d", origin)).kind).toBe("full");
    expect(await second.release()).toEqual([]);
    await (await take(one, "c", origin)).release();
  });

  it("are acquired from all requested semaphores or from none of them", async () => {
    const slots = createSlots({ redis, ...longLived });
    const [free, full] = [semaphore("free", 1, false), semaphore("full", 1, false)];
    const holder = await take(slots, "a", full);
    expect(await ask(slots, "b", free, full)).toEqual({ kind: "full", semaphore: full, reservations: [] });
    expect(await server.client.exists("inlet:{slots}:free")).toBe(0);
    await holder.release();
    await (await take(slots, "b", free, full)).release();
    expect(await server.client.keys("inlet:{slots}:f*")).toEqual([]);
  });

  it("are reserved for the longest waiting caller when they become free", async () => {
    const slots = createSlots({ redis, ...longLived });
    const only = semaphore("line", 1);
    const holder = await take(slots, "a", only);
    for (const name of ["b", "c"]) expect((await ask(slots, name, only)).kind).toBe("full");
    // Requesting again, with a later time, does not change the position in the queue.
    await slots.take({ name: "b", sinceMs: since - 1, semaphores: [only] });
    expect(names(await holder.release())).toEqual(["b"]);
    for (const name of ["d", "c"]) expect((await ask(slots, name, only)).kind).toBe("full");
    const reserved = await take(slots, "b", only);
    expect(names(await reserved.release())).toEqual(["c"]);
    expect(names(await (await take(slots, "c", only)).release())).toEqual(["d"]);
  });

  it("are offered to the next waiting caller if the first one still waits for another semaphore", async () => {
    const slots = createSlots({ redis, ...longLived });
    const [origin, organization] = [semaphore("origin", 1), semaphore("organization", 1)];
    const holder = await take(slots, "a", origin);
    const other = await take(slots, "z", organization);
    await ask(slots, "b", origin, organization);
    await ask(slots, "c", origin);
    expect(names(await holder.release())).toEqual(["b"]);
    const rejected = await ask(slots, "b", origin, organization);
    expect(rejected).toMatchObject({ semaphore: organization, reservations: [{ name: "c" }] });
    await (await take(slots, "c", origin)).release();
    expect(names(await other.release())).toEqual(["b"]);
    await (await take(slots, "b", origin, organization)).release();
  });

  it("can be acquired by another caller when their reservation expires", async () => {
    const slots = createSlots({ redis, ...longLived });
    const only = semaphore("gone", 1);
    const holder = await take(slots, "a", only);
    await ask(slots, "b", only);
    expect(names(await holder.release())).toEqual(["b"]);
    expect((await ask(slots, "c", only)).kind).toBe("full");
    await server.client.zadd("inlet:{slots}:gone", 1, "r:b");
    await (await take(slots, "c", only)).release();
  });

  it("are renewed for as long as their worker runs", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    const slots = createSlots({ redis, ...longLived });
    const alive = await take(slots, "a", semaphore("lives", 1, false));
    const endOf = async () =>
      Number((await server.client.zrange("inlet:{slots}:lives", "0", "0", "WITHSCORES"))[1]);
    for (let renewals = 0; renewals < 2; renewals++) {
      const end = await endOf();
      // A renewal within the same millisecond does not change the score.
      await until(async () => {
        vi.advanceTimersByTime(HOUR_MS / 3);
        return (await endOf()) > end;
      });
    }
    expect(alive.lost.aborted).toBe(false);
    expect((await ask(slots, "b", semaphore("lives", 1, false))).kind).toBe("full");
    await alive.release();
  });

  it("become free if their worker does not renew them in time", async () => {
    const slots = createSlots({ redis, ...longLived });
    const only = semaphore("dies", 1, false);
    // Simulates a killed worker, which no longer renews.
    await server.client.zadd("inlet:{slots}:dies", Date.now() + HOUR_MS, "dead");
    expect((await ask(slots, "b", only)).kind).toBe("full");
    await server.client.zadd("inlet:{slots}:dies", 1, "dead");
    await (await take(slots, "b", only)).release();
  });

  it("become free within their lease time if their worker died and the clock of Redis was then set back", async () => {
    const slots = createSlots({ redis, heldMs: 50, reservedMs: 50 });
    const origin = semaphore("set back", 1, false);
    await server.client.zadd("inlet:{slots}:set back", Date.now() + HOUR_MS, "dead");
    expect((await ask(slots, "a", origin)).kind).toBe("full");
    await until(async () => {
      const asked = await ask(slots, "a", origin);
      if (asked.kind === "taken") await asked.slot.release();
      return asked.kind === "taken";
    });
  });

  it("whose worker died are reserved for the next waiting caller at the next request", async () => {
    const slots = createSlots({ redis, ...longLived });
    const two = semaphore("crashed", 2);
    const end = Date.now() + HOUR_MS;
    await server.client.zadd("inlet:{slots}:crashed", end, "dead", end, "dead too");
    expect((await ask(slots, "b", two)).kind).toBe("full");
    const waitedSince = since;
    await server.client.zadd("inlet:{slots}:crashed", 1, "dead", 1, "dead too");
    const asked = await ask(slots, "c", { ...two, canQueue: false });
    expect(asked).toMatchObject({ kind: "taken", reservations: [{ name: "b", sinceMs: waitedSince }] });
    if (asked.kind === "taken") await asked.slot.release();
  });

  it("are reported to their holder as lost if their Redis key was deleted", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    const slots = createSlots({ redis, ...longLived });
    const [a, b] = [
      await take(slots, "a", semaphore("emptied", 1)),
      await take(slots, "b", semaphore("kept", 1)),
    ];
    await server.client.del("inlet:{slots}:emptied");
    vi.advanceTimersByTime(HOUR_MS / 3);
    await until(() => a.lost.aborted);
    // Both renewals were sent in one tick and are answered in order.
    await ask(slots, "c", semaphore("kept", 1, false));
    expect(b.lost.aborted).toBe(false);
    await b.release();
  });

  it("are reported to their holder as lost once Redis has been unreachable for longer than their lease time", async () => {
    await using own = await startRedis();
    await using ownRedis = await openTestRedis(own.url);
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
    const slots = createSlots({ redis: ownRedis, ...longLived });
    const slot = await take(slots, "a", semaphore("a", 1));
    own.signal("SIGSTOP");
    vi.advanceTimersByTime(HOUR_MS);
    expect(slot.lost.aborted).toBe(false);
    vi.advanceTimersByTime(HOUR_MS / 3);
    expect(slot.lost.aborted).toBe(true);
    own.signal("SIGCONT");
  });
});
