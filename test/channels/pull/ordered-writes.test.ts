import { describe, expect, it } from "vitest";
import { StaleSourceError } from "../../../src/bus/errors.ts";
import { OrderedWrites } from "../../../src/channels/pull/ordered-writes.ts";

const stale = () => new StaleSourceError("cursor", "the cursor is at another version");
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** A cursor that rejects writes like the bus does. A write may take time to store its version. */
function createCursor() {
  const cursor = { version: 0, written: [] as string[], sent: [] as string[] };
  const write = (name: string, work?: () => Promise<unknown>) => async (version: number) => {
    cursor.sent.push(name);
    await turn();
    if (version !== cursor.version) throw stale();
    await work?.();
    cursor.version = version + 1;
    cursor.written.push(name);
    return name;
  };
  return { cursor, write };
}

describe("the writes of one pull source run", () => {
  it("are sent without waiting for earlier writes, and return their results in order", async () => {
    const { cursor, write } = createCursor();
    const writes = new OrderedWrites({ version: 0, isPipelined: true });
    const all = ["a", "b", "c"].map((name) => writes.add(write(name)));
    expect(cursor.sent).toEqual(["a", "b", "c"]);
    expect(await Promise.all(all)).toEqual(["a", "b", "c"]);
    expect(cursor.written).toEqual(["a", "b", "c"]);
  });

  it("are stored in order even if one write takes longer", async () => {
    const { cursor, write } = createCursor();
    const writes = new OrderedWrites({ version: 0, isPipelined: true });
    const slow = Promise.withResolvers<void>();
    const all = [writes.add(write("a", () => slow.promise)), writes.add(write("b")), writes.add(write("c"))];
    await turn();
    await turn();
    // After the rejected writes, a new one would be rejected too, so it waits.
    all.push(writes.add(write("d")));
    await turn();
    expect(cursor.sent).toEqual(["a", "b", "c"]);
    slow.resolve();
    expect(await Promise.all(all)).toEqual(["a", "b", "c", "d"]);
    expect(cursor.written).toEqual(["a", "b", "c", "d"]);
  });

  it("stop after the first failure", async () => {
    const { cursor, write } = createCursor();
    const writes = new OrderedWrites({ version: 0, isPipelined: true });
    const full = new Error("the quarantine is full");
    const fail = async () => {
      await turn();
      throw full;
    };
    const all = [writes.add(write("a")), writes.add(write("b", fail)), writes.add(write("c"))];
    const [, , last] = await Promise.allSettled(all);
    expect(last).toEqual({ status: "rejected", reason: full });
    await expect(writes.add(write("d"))).rejects.toBe(full);
    expect(cursor.written).toEqual(["a"]);
    expect(cursor.sent).not.toContain("d");
    await writes.settled();
  });

  it("are retried only once if another process moved the cursor", async () => {
    const { cursor, write } = createCursor();
    cursor.version = 7;
    const writes = new OrderedWrites({ version: 0, isPipelined: true });
    await expect(writes.add(write("a"))).rejects.toMatchObject({ stale: "cursor" });
    expect(cursor.sent).toEqual(["a", "a"]);
  });

  it("are sent one after the other if events and cursor cannot be written together (Redis Cluster)", async () => {
    const { cursor, write } = createCursor();
    const writes = new OrderedWrites({ version: 0, isPipelined: false });
    const all = ["a", "b"].map((name) => writes.add(write(name)));
    await turn();
    expect(cursor.sent).toEqual(["a"]);
    await Promise.all(all);
    expect(cursor.written).toEqual(["a", "b"]);
  });
});
