import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RedisBus } from "../../src/bus/redis.ts";
import {
  createSlots,
  type Place,
  type Slot,
  type Slots,
  type TakenSlot,
  type Turn,
} from "../../src/bus/slots.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";
import { until } from "../support/until.ts";
import { openTestRedis } from "./support.ts";

let server: RedisServer;
let redis: RedisBus;
let otherRedis: RedisBus;
beforeAll(async () => {
  server = await startRedis();
  [redis, otherRedis] = await Promise.all([openTestRedis(server.url), openTestRedis(server.url)]);
});
afterAll(async () => {
  for (const each of [redis, otherRedis, server]) await each[Symbol.asyncDispose]();
});

const place = (key: string, limit: number, waits = true): Place => ({ key, limit, waits });

const names = (turns: readonly Turn[]) => turns.map(({ name }) => name);

let since = 0;
/** Whoever asks later gets in line further behind. */
const ask = (slots: Slots, name: string, ...places: Place[]): Promise<TakenSlot> =>
  slots.take({ name, sinceMs: ++since, places });

async function take(slots: Slots, name: string, ...places: Place[]): Promise<Slot> {
  const answer = await ask(slots, name, ...places);
  if (answer.kind !== "taken") throw new Error(`${answer.place.key} is full`);
  return answer.slot;
}

describe("slots", () => {
  it("are so many over all workers, and come back when they are released", async () => {
    const [one, other] = [createSlots({ redis }), createSlots({ redis: otherRedis })];
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
    const slots = createSlots({ redis });
    const [free, full] = [place("free", 1, false), place("full", 1, false)];
    const holder = await take(slots, "a", full);
    expect(await ask(slots, "b", free, full)).toEqual({ kind: "full", place: full, turns: [] });
    expect(await server.client.exists("inlet:{slots}:free")).toBe(0);
    await holder.release();
    await (await take(slots, "b", free, full)).release();
    expect(await server.client.keys("inlet:{slots}:f*")).toEqual([]);
  });

  it("that come free are kept for the name that has waited longest", async () => {
    const slots = createSlots({ redis });
    const only = place("line", 1);
    const holder = await take(slots, "a", only);
    for (const name of ["b", "c"]) expect((await ask(slots, name, only)).kind).toBe("full");
    // Asking again, and later, costs nobody their place.
    await slots.take({ name: "b", sinceMs: since - 1, places: [only] });
    expect(names(await holder.release())).toEqual(["b"]);
    for (const name of ["d", "c"]) expect((await ask(slots, name, only)).kind).toBe("full");
    const turn = await take(slots, "b", only);
    expect(names(await turn.release())).toEqual(["c"]);
    expect(names(await (await take(slots, "c", only)).release())).toEqual(["d"]);
  });

  it("are not kept by one that still waits elsewhere: the next in line is told", async () => {
    const slots = createSlots({ redis });
    const [origin, organization] = [place("origin", 1), place("organization", 1)];
    const holder = await take(slots, "a", origin);
    const other = await take(slots, "z", organization);
    await ask(slots, "b", origin, organization);
    await ask(slots, "c", origin);
    expect(names(await holder.release())).toEqual(["b"]);
    const refused = await ask(slots, "b", origin, organization);
    expect(refused).toMatchObject({ place: organization, turns: [{ name: "c" }] });
    await (await take(slots, "c", origin)).release();
    expect(names(await other.release())).toEqual(["b"]);
    await (await take(slots, "b", origin, organization)).release();
  });

  it("that are kept for one who does not come are another's after a while", async () => {
    const slots = createSlots({ redis, keptMs: 200 });
    const only = place("gone", 1);
    const holder = await take(slots, "a", only);
    await ask(slots, "b", only);
    expect(names(await holder.release())).toEqual(["b"]);
    expect((await ask(slots, "c", only)).kind).toBe("full");
    await until(async () => (await ask(slots, "c", only)).kind === "taken");
  });

  it("are held for as long as their worker lives, and come back when it does not", async () => {
    const slots = createSlots({ redis, heldMs: 300 });
    const only = place("dies", 1, false);
    const alive = await take(slots, "a", only);
    const startedAt = performance.now();
    await until(async () => {
      expect((await ask(slots, "b", only)).kind).toBe("full");
      return performance.now() - startedAt > 700;
    });
    expect(alive.lost.aborted).toBe(false);
    await alive.release();
    // As a worker leaves it that is killed: nobody renews.
    await server.client.zadd("inlet:{slots}:dies", Date.now() + 300, "dead");
    expect((await ask(slots, "b", only)).kind).toBe("full");
    await until(async () => (await ask(slots, "b", only)).kind === "taken");
  });

  it("of a worker that died are handed on to those in line by whoever comes by", async () => {
    const slots = createSlots({ redis });
    const two = place("crashed", 2);
    await server.client.zadd("inlet:{slots}:crashed", Date.now() + 200, "dead", Date.now() + 200, "dead too");
    expect((await ask(slots, "b", two)).kind).toBe("full");
    const waitedSince = since;
    await until(async () => {
      const asked = await ask(slots, "c", { ...two, waits: false });
      if (asked.kind === "full") return false;
      expect(asked.turns).toEqual([{ name: "b", sinceMs: waitedSince }]);
      await asked.slot.release();
      return true;
    });
  });

  it("that are lost say so: after an emptied Redis, and when Redis is away for longer than they are held", async () => {
    await using own = await startRedis();
    await using ownRedis = await openTestRedis(own.url);
    const slots = createSlots({ redis: ownRedis, heldMs: 300 });
    const [a, b] = [await take(slots, "a", place("a", 1)), await take(slots, "b", place("b", 1))];
    await own.client.del("inlet:{slots}:a");
    await until(() => a.lost.aborted);
    expect(b.lost.aborted).toBe(false);
    own.signal("SIGSTOP");
    await until(() => b.lost.aborted);
    own.signal("SIGCONT");
  });
});
