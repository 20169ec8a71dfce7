import { describe, expect, test } from "vitest";
import { cursorKey } from "../../../src/bus/keys.ts";
import { createSourcePositions } from "../../../src/bus/sources/source-positions.ts";
import { createSourceStates } from "../../../src/bus/sources/source-states.ts";
import { luaScript } from "../../../src/lib/lua.ts";
import { opened } from "../../support/opened.ts";
import { now, openedBus, testChannel, testEvent, testPolicy, testTopic } from "../support.ts";

const { server, redis, publish } = openedBus();
const positions = opened(() => createSourcePositions({ redis }));

function testSource() {
  const channel = testChannel();
  const ref = { number: channel.number, topics: [testTopic(channel)] };
  const write = (epoch: number, version: number, value?: string) =>
    publish(
      {
        channel,
        events: [testEvent(channel)],
        policy: testPolicy,
        position: { source: channel.number, epoch, version, ...(value !== undefined && { value }) },
      },
      now,
    );
  async function take(options?: { readonly skipBackoff?: boolean }) {
    const taken = await positions.takeOver(ref, options);
    if (taken.kind !== "acquired") throw new Error(`wait ${taken.waitMs} ms`);
    return taken;
  }
  const length = () => server.client.xlen(testTopic(channel));
  return { channel, ref, write, take, length };
}

const scriptOf = (name: string) =>
  luaScript(redis, new URL(`../../../src/bus/sources/${name}.lua`, import.meta.url));

describe("the epoch of a pull source (fencing token)", () => {
  // In a Cluster, topics are stamped slot by slot, so stamps can arrive out of order.
  test("is not lowered on a topic by a late write of a lower epoch", async () => {
    const { ref } = testSource();
    const stamp = scriptOf("source-stamp");
    expect(await stamp(ref.topics, [ref.number, 10])).toBe("0");
    expect(await stamp(ref.topics, [ref.number, 5])).toBe("10");
    expect(await server.client.hget(`{${ref.topics[0]}}:e`, `s${ref.number}`)).toBe("10");
  });

  test("is raised by a restore, so that earlier runs are rejected even if their epoch came from a fast clock", async () => {
    const { ref, write } = testSource();
    const ahead = Date.now() + 10 ** 9;
    await server.client.hset(cursorKey(ref.number), { e: ahead, v: 0 });
    expect(Number(await scriptOf("source-fence")([cursorKey(ref.number)], [ref.number]))).toBe(ahead + 1);
    await expect(write(ahead, 0, "x")).rejects.toMatchObject({ stale: "epoch" });
  });
});

describe("taking over a pull source", () => {
  test("rejects further writes of the previous owner and continues at its cursor", async () => {
    const { write, take, length } = testSource();
    const first = await take();
    expect(first).toMatchObject({ version: 0, value: undefined, failures: 0 });
    await write(first.epoch, 0, "one");
    const second = await take();
    expect(second).toMatchObject({ version: 1, value: "one", startedAtMs: first.startedAtMs });
    expect(second.epoch).toBeGreaterThan(first.epoch);
    await expect(write(first.epoch, 1, "two")).rejects.toMatchObject({ stale: "epoch" });
    await write(second.epoch, 1, "two");
    expect(await length()).toBe(2);
  });

  test("gives 20 concurrent owners different epochs, and only the owner with the highest epoch can write", async () => {
    const { write, take } = testSource();
    const taken = await Promise.all(Array.from({ length: 20 }, () => take()));
    const epochs = taken.map(({ epoch }) => epoch);
    expect(new Set(epochs).size).toBe(20);
    const writes = await Promise.allSettled(epochs.map((epoch) => write(epoch, 0, "x")));
    expect(writes.map(({ status }) => status === "fulfilled")).toEqual(
      epochs.map((epoch) => epoch === Math.max(...epochs)),
    );
  });

  test("chooses a higher epoch than any topic of the source has stored, even if the cursor was lost", async () => {
    const { channel, ref, take, write } = testSource();
    const before = await take();
    await write(before.epoch, 0, "x");
    await server.client.hset(`{${ref.topics[0]}}:e`, `s${channel.number}`, before.epoch + 10 ** 9);
    await server.client.del(cursorKey(channel.number));
    const after = await take();
    expect(after.epoch).toBeGreaterThan(before.epoch + 10 ** 9);
    expect(after.value).toBeUndefined();
    await expect(write(before.epoch, 1, "y")).rejects.toMatchObject({ stale: "epoch" });
  });

  test("waits only for the minimum time between wakes if a webhook requested the run", async () => {
    const { ref } = testSource();
    const spacing = { intervalMs: 3_600_000, retryMs: 1_800_000 };
    const take = (wakeSpacingMs?: number) => positions.takeOver(ref, { spacing, wakeSpacingMs });
    expect(await take(60_000)).toMatchObject({ kind: "acquired" });
    const waiting = await take(60_000);
    expect(waiting).toMatchObject({ kind: "interval" });
    expect(waiting.kind === "interval" && waiting.waitMs).toBeLessThanOrEqual(60_000);
    expect(await take(0)).toMatchObject({ kind: "acquired" });
    const scheduled = await take();
    expect(scheduled.kind === "interval" && scheduled.waitMs).toBeGreaterThan(1_700_000);
  });

  test("counts the minimum time between wakes even if the source has no interval", async () => {
    const { ref } = testSource();
    expect(await positions.takeOver(ref, { wakeSpacingMs: 60_000 })).toMatchObject({ kind: "acquired" });
    expect(await positions.takeOver(ref, { wakeSpacingMs: 60_000 })).toMatchObject({ kind: "interval" });
    expect(await positions.takeOver(ref)).toMatchObject({ kind: "acquired" });
  });

  test("waits for the delay that the server requested, even if the caller skips the backoff", async () => {
    const { ref, take, channel } = testSource();
    const first = await take();
    const failed = { failures: 3, notBeforeMs: 0, retryInMs: 3_600_000 };
    expect(await positions.end(channel.number, first.epoch, failed)).toBe("written");
    const early = await positions.takeOver(ref);
    expect(early).toEqual({ kind: "backoff", waitMs: expect.any(Number) });
    const fresh = await take({ skipBackoff: true });
    expect(fresh.failures).toBe(0);
    expect(await positions.end(channel.number, first.epoch, failed)).toBe("gone");
    await positions.end(channel.number, fresh.epoch, { failures: 0, notBeforeMs: 3_600_000, retryInMs: 0 });
    expect(await positions.takeOver(ref, { skipBackoff: true })).toMatchObject({ kind: "backoff" });
    // A take-over that had to wait fences no run.
    await positions.end(channel.number, fresh.epoch, { failures: 2, notBeforeMs: 0, retryInMs: 0 });
    expect(await take()).toMatchObject({ failures: 2 });
  });
});

describe("consecutive rejections of a pull source's requests", () => {
  const refusal = { count: 3, forMs: 600_000, retryInMs: 900_000 };
  const ending = { failures: 1, notBeforeMs: 0, retryInMs: 0 };

  test("are reported as persistent after a given number and a given duration, until a run succeeds", async () => {
    const { ref, take, channel } = testSource();
    const { number } = channel;
    const { epoch } = await take();
    const refuse = () => positions.end(number, epoch, { ...ending, refusal });
    for (let i = 0; i < 5; i++) expect(await refuse()).toBe("written");
    await redis.call("hset", [cursorKey(number), "ws", Date.now() - 601_000]);
    expect(await positions.end(number, epoch, ending)).toBe("written");
    expect(await refuse()).toBe("lasting");
    expect(await positions.takeOver(ref)).toMatchObject({ kind: "backoff" });
    expect(await positions.end(number, epoch, { ...ending, refusal: "none" })).toBe("written");
    expect(await refuse()).toBe("written");
  });

  test("are counted from zero after a user changes the configuration", async () => {
    const { take, channel } = testSource();
    const { epoch } = await take();
    await positions.end(channel.number, epoch, { ...ending, refusal });
    await redis.call("hset", [cursorKey(channel.number), "w", 9, "ws", Date.now() - 3_600_000]);
    const fresh = await take({ skipBackoff: true });
    expect(await positions.end(channel.number, fresh.epoch, { ...ending, refusal })).toBe("written");
  });
});

describe("setting the cursor of a pull source", () => {
  test.each(["7", undefined])("to %j ends the wait that the server requested", async (value) => {
    const { ref, take, channel } = testSource();
    const { epoch } = await take();
    await positions.end(channel.number, epoch, {
      failures: 1,
      notBeforeMs: 86_400_000,
      retryInMs: 3_600_000,
    });
    expect(await positions.takeOver(ref)).toMatchObject({ kind: "backoff" });
    await positions.set(ref, value);
    expect(await take()).toMatchObject({ value, failures: 0 });
  });

  test("rejects further writes of the current run, and the next run starts at the new cursor", async () => {
    const { ref, take, write, channel } = testSource();
    const run = await take();
    await write(run.epoch, 0, "far");
    expect(await positions.set(ref, "back")).toBe(2);
    await expect(write(run.epoch, 1, "farther")).rejects.toMatchObject({ stale: "epoch" });
    expect(await positions.read(channel.number)).toMatchObject({ value: "back", version: 2 });
    expect(await take()).toMatchObject({ value: "back", version: 2 });
  });

  test("is rejected if the cursor has moved since it was read", async () => {
    const { ref, take, write, channel } = testSource();
    const run = await take();
    await write(run.epoch, 0, "one");
    expect(await positions.set(ref, "x", { version: 0 })).toBeUndefined();
    // The rejected change fenced no run.
    await write(run.epoch, 1, "two");
    expect((await positions.read(channel.number)).value).toBe("two");
    expect(await positions.set(ref, "x", { version: 2 })).toBe(3);
  });

  test("to undefined rejects further writes of the current run, and the next run starts without a cursor", async () => {
    const { ref, take, write } = testSource();
    const run = await take();
    await write(run.epoch, 0, "one");
    await positions.set(ref, undefined);
    const again = await take();
    expect(again).toMatchObject({ value: undefined, version: 2 });
    expect(again.startedAtMs).toBeGreaterThanOrEqual(run.startedAtMs);
    await expect(write(run.epoch, 1, "two")).rejects.toMatchObject({ stale: "epoch" });
  });

  test("to the empty string is different from removing the cursor", async () => {
    const { ref, take } = testSource();
    await positions.set(ref, "");
    expect((await take()).value).toBe("");
  });
});

test("the state of a pull source can be written only by the current owner of the source", async () => {
  const { channel, take } = testSource();
  const states = createSourceStates({ redis });
  const old = await take();
  const owner = await take();
  expect(await states.write(channel.number, owner.epoch, { state: "open", owner: "w2" }, 1000)).toBe(true);
  expect(await states.write(channel.number, old.epoch, { state: "waiting" }, 2000)).toBe(false);
  const lastError = { code: "reset", message: "cut", atMs: 3000 };
  const lastWarning = { code: "gap", message: "a gap", atMs: 3000 };
  const written = { state: "open", lastError, lastWarning, lagMs: 3, nextAtMs: 9 } as const;
  await states.write(channel.number, owner.epoch, written, 3000);
  await states.write(channel.number, owner.epoch, { nextAtMs: null }, 4000);
  expect(await states.read(channel.number)).toEqual({
    state: "open",
    sinceMs: 1000,
    owner: "w2",
    lastError,
    lastWarning,
    lagMs: 3,
    lastEventAtMs: undefined,
    nextAtMs: undefined,
  });
});
