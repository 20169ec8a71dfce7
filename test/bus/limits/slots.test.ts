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
import { openedBus, openTestRedis, PATIENT } from "../support.ts";

const { server, redis } = openedBus();
const otherRedis = opened(() => openTestRedis(server.url, PATIENT));

afterEach(() => void vi.useRealTimers());

const place = (key: string, limit: number, waits = true): Semaphore => ({ key, limit, canQueue: waits });

const names = (reservations: readonly SlotReservation[]) => reservations.map(({ name }) => name);

const HOUR_MS = 3_600_000;
/** Nothing runs out by itself while a test runs. */
const patient = { heldMs: HOUR_MS, reservedMs: HOUR_MS };

let since = 0;
/** Each that asks gets in line behind those before. */
const ask = (slots: Slots, name: string, ...places: Semaphore[]): Promise<TakenSlot> =>
  slots.take({ name, sinceMs: ++since, semaphores: places });

async function take(slots: Slots, name: string, ...places: Semaphore[]): Promise<Slot> {
  const answer = await ask(slots, name, ...places);
  if (answer.kind !== "taken") throw new Error(`${answer.semaphore.key} is full`);
  return answer.slot;
}

describe("slots", () => {
  it("are limited over all workers together, and come back when they are released", async () => {
    const [one, other] = [createSlots({ redis, ...patient }), createSlots({ redis: otherRedis, ...patient })];
    const origin = place("many", 2, false);
    const held = await take(one, "a", origin);
    await using _ = { [Symbol.asyncDispose]: async () => void (await held.release().catch(() => {})) };
    const second = await take(other, "b", origin);
    expect((await ask(one, "c", origin)).kind).toBe("full");
    expect((await ask(other, "d", origin)).kind).toBe("full");
    expect(await second.release()).toEqual([]);
    await (await take(one, "c", origin)).release();
  });

  it("are taken of all places or of none", async () => {
    const slots = createSlots({ redis, ...patient });
    const [free, full] = [place("free", 1, false), place("full", 1, false)];
    const holder = await take(slots, "a", full);
    expect(await ask(slots, "b", free, full)).toEqual({ kind: "full", semaphore: full, reservations: [] });
    expect(await server.client.exists("inlet:{slots}:free")).toBe(0);
    await holder.release();
    await (await take(slots, "b", free, full)).release();
    expect(await server.client.keys("inlet:{slots}:f*")).toEqual([]);
  });

  it("are kept, once free, for the name that has waited longest", async () => {
    const slots = createSlots({ redis, ...patient });
    const only = place("line", 1);
    const holder = await take(slots, "a", only);
    for (const name of ["b", "c"]) expect((await ask(slots, name, only)).kind).toBe("full");
    // Asking again, and later, costs nobody their place.
    await slots.take({ name: "b", sinceMs: since - 1, semaphores: [only] });
    expect(names(await holder.release())).toEqual(["b"]);
    for (const name of ["d", "c"]) expect((await ask(slots, name, only)).kind).toBe("full");
    const turn = await take(slots, "b", only);
    expect(names(await turn.release())).toEqual(["c"]);
    expect(names(await (await take(slots, "c", only)).release())).toEqual(["d"]);
  });

  it("are not kept for a name that still waits elsewhere: the next in line is told", async () => {
    const slots = createSlots({ redis, ...patient });
    const [origin, organization] = [place("origin", 1), place("organization", 1)];
    const holder = await take(slots, "a", origin);
    const other = await take(slots, "z", organization);
    await ask(slots, "b", origin, organization);
    await ask(slots, "c", origin);
    expect(names(await holder.release())).toEqual(["b"]);
    const refused = await ask(slots, "b", origin, organization);
    expect(refused).toMatchObject({ semaphore: organization, reservations: [{ name: "c" }] });
    await (await take(slots, "c", origin)).release();
    expect(names(await other.release())).toEqual(["b"]);
    await (await take(slots, "b", origin, organization)).release();
  });

  it("go to another name when the one they are kept for does not come in time", async () => {
    const slots = createSlots({ redis, ...patient });
    const only = place("gone", 1);
    const holder = await take(slots, "a", only);
    await ask(slots, "b", only);
    expect(names(await holder.release())).toEqual(["b"]);
    expect((await ask(slots, "c", only)).kind).toBe("full");
    await server.client.zadd("inlet:{slots}:gone", 1, "r:b");
    await (await take(slots, "c", only)).release();
  });

  it("are renewed for as long as their worker lives", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    const slots = createSlots({ redis, ...patient });
    const alive = await take(slots, "a", place("lives", 1, false));
    const endOf = async () =>
      Number((await server.client.zrange("inlet:{slots}:lives", "0", "0", "WITHSCORES"))[1]);
    for (let renewals = 0; renewals < 2; renewals++) {
      const end = await endOf();
      // A renewal in the millisecond of the one before it changes nothing.
      await until(async () => {
        vi.advanceTimersByTime(HOUR_MS / 3);
        return (await endOf()) > end;
      });
    }
    expect(alive.lost.aborted).toBe(false);
    expect((await ask(slots, "b", place("lives", 1, false))).kind).toBe("full");
    await alive.release();
  });

  it("come back once their worker has not renewed them in time", async () => {
    const slots = createSlots({ redis, ...patient });
    const only = place("dies", 1, false);
    // As a worker leaves it that is killed: nobody renews.
    await server.client.zadd("inlet:{slots}:dies", Date.now() + HOUR_MS, "dead");
    expect((await ask(slots, "b", only)).kind).toBe("full");
    await server.client.zadd("inlet:{slots}:dies", 1, "dead");
    await (await take(slots, "b", only)).release();
  });

  it("come back in time from a worker that died before the clock of Redis was set back", async () => {
    const slots = createSlots({ redis, heldMs: 50, reservedMs: 50 });
    const origin = place("set back", 1, false);
    await server.client.zadd("inlet:{slots}:set back", Date.now() + HOUR_MS, "dead");
    expect((await ask(slots, "a", origin)).kind).toBe("full");
    await until(async () => {
      const asked = await ask(slots, "a", origin);
      if (asked.kind === "taken") await asked.slot.release();
      return asked.kind === "taken";
    });
  });

  it("pass from a dead worker to the next in line at the next request", async () => {
    const slots = createSlots({ redis, ...patient });
    const two = place("crashed", 2);
    const end = Date.now() + HOUR_MS;
    await server.client.zadd("inlet:{slots}:crashed", end, "dead", end, "dead too");
    expect((await ask(slots, "b", two)).kind).toBe("full");
    const waitedSince = since;
    await server.client.zadd("inlet:{slots}:crashed", 1, "dead", 1, "dead too");
    const asked = await ask(slots, "c", { ...two, canQueue: false });
    expect(asked).toMatchObject({ kind: "taken", reservations: [{ name: "b", sinceMs: waitedSince }] });
    if (asked.kind === "taken") await asked.slot.release();
  });

  it("are reported lost when they are gone from Redis, and no others are", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    const slots = createSlots({ redis, ...patient });
    const [a, b] = [await take(slots, "a", place("emptied", 1)), await take(slots, "b", place("kept", 1))];
    await server.client.del("inlet:{slots}:emptied");
    vi.advanceTimersByTime(HOUR_MS / 3);
    await until(() => a.lost.aborted);
    // Both were renewed in one turn, and answered in order.
    await ask(slots, "c", place("kept", 1, false));
    expect(b.lost.aborted).toBe(false);
    await b.release();
  });

  it("are reported lost when Redis is away for longer than their lease, and not before", async () => {
    await using own = await startRedis();
    await using ownRedis = await openTestRedis(own.url);
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
    const slots = createSlots({ redis: ownRedis, ...patient });
    const slot = await take(slots, "a", place("a", 1));
    own.signal("SIGSTOP");
    vi.advanceTimersByTime(HOUR_MS);
    expect(slot.lost.aborted).toBe(false);
    vi.advanceTimersByTime(HOUR_MS / 3);
    expect(slot.lost.aborted).toBe(true);
    own.signal("SIGCONT");
  });
});
