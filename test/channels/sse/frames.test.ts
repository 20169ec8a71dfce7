import { describe, expect, it, vi } from "vitest";
import { FieldReader } from "../../../src/channels/sse/fields.ts";
import { type FrameListener, readFrames } from "../../../src/channels/sse/frames.ts";
import { until } from "../../support/until.ts";
import { read, readsCutStreams, readsStreamsByteByByte, readText, readTo } from "./frames-support.ts";

describe("an event stream", () => {
  it("is read as the standard reads it, wherever it is cut", () => readsCutStreams(500));

  it("is read as the standard reads it, byte by byte", () => readsStreamsByteByByte(100));

  it("loses one byte order mark at its beginning, and no second one", async () => {
    expect((await readText("\uFEFFdata: 1\n\n")).frames).toMatchObject([{ data: "1" }]);
    expect((await readText("\uFEFF\uFEFFdata: 1\n\ndata: 2\n\n")).frames).toMatchObject([{ data: "2" }]);
    expect((await readText("ï»¿data: 1\n\ndata: 2\n\n")).frames).toMatchObject([{ data: "2" }]);
  });

  it("tells an id that an event brings from one that comes alone or carries over", async () => {
    const told: unknown[] = [];
    const listener: FrameListener = {
      onFrame: ({ id }) => told.push(["frame", id]),
      onCheckpoint: (id) => told.push(["checkpoint", id]),
      onRetry: () => {},
      onTooLarge: () => {},
    };
    const text =
      "id: 1\ndata: a\n\ndata: b\n\nid: 2\n\ndata: c\n\nid: 3\n\nid: 4\n\nid: 4\ndata: d\n\nid\n\n";
    await readTo(listener, [Buffer.from(text)], 100);
    expect(told).toEqual([
      ["frame", "1"],
      ["frame", undefined],
      ["checkpoint", "2"],
      ["frame", undefined],
      ["checkpoint", "3"],
      ["checkpoint", "4"],
      ["frame", "4"],
      ["checkpoint", ""],
    ]);
  });
});

it("the client is given a piece when there is room, and the reading ends with the error of the body", async () => {
  const rooms: PromiseWithResolvers<void>[] = [];
  const failure = new Error("cut");
  const frames: string[] = [];
  const silent = { onCheckpoint() {}, onRetry() {}, onTooLarge() {} };
  const reading = readFrames(
    {
      url: "http://localhost/",
      maxEventBytes: 100,
      async open() {
        return (async function* () {
          yield Buffer.from("data: 1\n\ndata: 2\n\n");
          yield Buffer.from("data: 3\n\nid: 4\n");
          throw failure;
        })();
      },
      room() {
        rooms.push(Promise.withResolvers());
        return rooms.at(-1)?.promise;
      },
      signal: new AbortController().signal,
    },
    { ...silent, onFrame: ({ data }) => frames.push(data) },
  );
  await until(() => rooms.length === 1);
  expect(frames).toEqual(["1", "2"]);
  rooms[0]?.resolve();
  await until(() => rooms.length === 2);
  expect(frames).toEqual(["1", "2", "3"]);
  rooms[1]?.resolve();
  await expect(reading).rejects.toBe(failure);
});

it("an error of the listener ends the reading, and closes the body", async () => {
  const failure = new Error("full");
  let isClosed = false;
  const listener: FrameListener = {
    onFrame() {
      throw failure;
    },
    onCheckpoint() {},
    onRetry() {},
    onTooLarge() {},
  };
  async function* body() {
    try {
      for (;;) yield Buffer.from("data: 1\n\n");
    } finally {
      isClosed = true;
    }
  }
  const source = { url: "http://localhost/", maxEventBytes: 100, room: () => undefined };
  const { signal } = new AbortController();
  await expect(readFrames({ ...source, open: async () => body(), signal }, listener)).rejects.toBe(failure);
  await until(() => isClosed);
});

it("the client never reconnects by itself, however a stream ends", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout"] });
  try {
    const listener = { onFrame() {}, onCheckpoint() {}, onRetry() {}, onTooLarge() {} };
    const broken = async () => {
      throw new Error("cut");
    };
    const bodyOf = (text: string, end?: () => Promise<void>) => async () =>
      (async function* () {
        yield Buffer.from(text);
        await end?.();
      })();
    for (const ask of [
      async () => undefined,
      broken,
      bodyOf("data: 1\n\n"),
      bodyOf("data: 1\n\n", broken),
      bodyOf(`data: ${"x".repeat(200)}\n\n`),
      bodyOf(`data: ${"x".repeat(200)}`),
    ]) {
      const open = vi.fn(ask);
      const { signal } = new AbortController();
      const source = { url: "http://localhost/", maxEventBytes: 100, open, room: () => undefined, signal };
      await readFrames(source, listener).catch(() => {});
      await new Promise(setImmediate);
      // The client waits for 3 s before it asks again.
      expect(vi.getTimerCount()).toBe(0);
      expect(open).toHaveBeenCalledOnce();
    }
  } finally {
    vi.useRealTimers();
  }
});

describe("an event that is too large", () => {
  it("is refused to the byte, in one line or in many", async () => {
    const exact = "é".repeat(50);
    expect(await readText(`data: ${exact}\n\n`, 100)).toMatchObject({
      isTooLarge: false,
      frames: [{ data: exact }],
    });
    expect(await readText(`data: ${exact}x\n\n`, 100)).toMatchObject({ isTooLarge: true, frames: [] });
    expect((await readText("data: 12345\n".repeat(20), 100)).isTooLarge).toBe(true);
    expect((await readText(`data: ${"x\ndata: ".repeat(49)}xx\n\n`, 100)).isTooLarge).toBe(false);
  });

  it("ends the reading: what comes after it is not taken", async () => {
    const { frames, isTooLarge } = await readText(`data: 1\n\ndata: ${"x".repeat(101)}\n\ndata: 2\n\n`, 100);
    expect(isTooLarge).toBe(true);
    expect(frames.map(({ data }) => data)).toEqual(["1"]);
  });

  it("is refused while its line is still coming", async () => {
    const chunk = Buffer.from("x".repeat(1000));
    const result = await read([Buffer.from("data: "), ...Array.from({ length: 100 }, () => chunk)], 5_000);
    expect(result.isTooLarge).toBe(true);
  });

  it("is not a long comment or a long unknown field, of which nothing is kept", async () => {
    const chunk = Buffer.from("x".repeat(1000));
    const long = Array.from({ length: 100 }, () => chunk);
    const chunks = [
      Buffer.from(": "),
      ...long,
      Buffer.from("\nunknown"),
      ...long,
      Buffer.from("\ndata: 1\n\n"),
    ];
    expect(await read(chunks, 5_000)).toMatchObject({ isTooLarge: false, frames: [{ data: "1" }] });
  });
});

it("lines that are no field are dropped before the client, which makes an error object of each", () => {
  const fields = new FieldReader({ onBlock() {}, onRetry() {} });
  expect(fields.read(Buffer.from("x\nunknown: y\n: comment\n".repeat(1_000)))).toBe("");
  expect(fields.read(Buffer.from("x\ndata: 1\nx"))).toBe("data: 1\n");
});
