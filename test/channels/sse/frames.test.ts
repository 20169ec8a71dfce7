import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { type FrameListener, readFrames } from "../../../src/channels/sse/frames.ts";
import { until } from "../../support/until.ts";

interface Read {
  readonly frames: { readonly event: string; readonly data: string; readonly lastEventId: string }[];
  readonly retries: number[];
  lastEventId: string;
  isTooLarge: boolean;
}

/** Reads a stream that comes in these chunks, to its end. */
async function readTo(
  listener: FrameListener,
  chunks: readonly Uint8Array[],
  maxEventBytes: number,
): Promise<void> {
  await readFrames(
    {
      url: "http://localhost/",
      maxEventBytes,
      async open() {
        return (async function* () {
          yield* chunks;
        })();
      },
      room: () => undefined,
      signal: new AbortController().signal,
    },
    listener,
  );
}

async function read(chunks: readonly Uint8Array[], maxEventBytes = 1_000_000): Promise<Read> {
  const result: Read = { frames: [], retries: [], lastEventId: "", isTooLarge: false };
  const listener: FrameListener = {
    onFrame({ event, data, id }) {
      result.lastEventId = id ?? result.lastEventId;
      result.frames.push({ event, data, lastEventId: result.lastEventId });
    },
    onCheckpoint(id) {
      result.lastEventId = id;
    },
    onRetry: (ms) => result.retries.push(ms),
    onTooLarge() {
      result.isTooLarge = true;
    },
  };
  await readTo(listener, chunks, maxEventBytes);
  return result;
}

const readText = (text: string, maxEventBytes?: number): Promise<Read> =>
  read([Buffer.from(text)], maxEventBytes);

/** WHATWG HTML, section "Interpreting an event stream", word for word, over a stream that is there as a whole. */
function interpret(bytes: Uint8Array): Omit<Read, "isTooLarge"> {
  const text = new TextDecoder().decode(bytes);
  const lines = text.split(/\r\n|\n|\r/);
  // What no end of line has closed is no line yet.
  lines.pop();
  const result: Omit<Read, "isTooLarge"> = { frames: [], retries: [], lastEventId: "" };
  let data = "";
  let eventType = "";
  let idBuffer = "";
  for (const line of lines) {
    if (line === "") {
      result.lastEventId = idBuffer;
      if (data !== "") {
        const event = eventType === "" ? "message" : eventType;
        result.frames.push({ event, data: data.slice(0, -1), lastEventId: idBuffer });
      }
      data = "";
      eventType = "";
      continue;
    }
    const colon = line.indexOf(":");
    if (colon === 0) continue;
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") eventType = value;
    if (field === "data") data += `${value}\n`;
    if (field === "id" && !value.includes("\0")) idBuffer = value;
    if (field === "retry" && /^[0-9]+$/.test(value)) result.retries.push(Number.parseInt(value, 10));
  }
  return result;
}

const EOLS = ["\n", "\r", "\r\n", "\n\n", "\r\r", "\r\n\r\n"];
const TEXTS = [
  ...["data", "data:", "data: ", "data:  x", "data: 1", "event: a", "event:", "id: 1", "id: 2", "id:", "id"],
  ...[
    "id: a\0b",
    "retry: 10",
    "retry: 1x",
    "retry:",
    "retry: ９",
    ": comment",
    ":",
    "unknown: x",
    "dat",
    "DATA: x",
  ],
  ...["x", ":", " ", "\uFEFF", "ï»¿", "ü", "😀", "\u2028", "\0"],
];
const INVALID = [[0xff], [0xc3], [0xe2, 0x82], [0xf0, 0x9f, 0x98], [0xef, 0xbb], [0xed, 0xa0, 0x80]];

const part = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom(...TEXTS).map((text) => Buffer.from(text)) },
  { weight: 6, arbitrary: fc.constantFrom(...EOLS).map((text) => Buffer.from(text)) },
  { weight: 1, arbitrary: fc.constantFrom(...INVALID).map((bytes) => Buffer.from(bytes)) },
);
const stream = fc.array(part, { maxLength: 40 }).map((parts) => Buffer.concat(parts));

function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const ends = [...places.map((place) => place % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
  return ends.map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end));
}

describe("an event stream", () => {
  it("is read as the standard reads it, wherever it is cut", async () => {
    await fc.assert(
      fc.asyncProperty(stream, fc.array(fc.nat(1000), { maxLength: 12 }), async (bytes, places) => {
        const { isTooLarge, ...result } = await read(cut(bytes, places));
        expect(isTooLarge).toBe(false);
        expect(result).toEqual(interpret(bytes));
      }),
      { numRuns: 5_000 },
    );
  });

  it("is read as the standard reads it, byte by byte", async () => {
    await fc.assert(
      fc.asyncProperty(stream, async (bytes) => {
        const { isTooLarge, ...result } = await read([...bytes].map((byte) => Uint8Array.of(byte)));
        expect(isTooLarge).toBe(false);
        expect(result).toEqual(interpret(bytes));
      }),
      { numRuns: 1_000 },
    );
  });

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

it("comes to the client in pieces, each when there is room, and ends with what the body breaks with", async () => {
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

it("ends with what its listener breaks with, and the body with it", async () => {
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

it("is asked for once, however it ends: to ask again is for whoever reads it", async () => {
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

  it("is told while its line is still coming, however long that goes on", async () => {
    const chunk = Buffer.from("x".repeat(1000));
    const result = await read([Buffer.from("data: "), ...Array.from({ length: 100 }, () => chunk)], 5_000);
    expect(result.isTooLarge).toBe(true);
  });

  it("is no comment and no unknown field, of which nothing is kept", async () => {
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

it("costs little where it is made of what is no field: a sender cannot keep the gateway busy with that", async () => {
  const chunks = Array.from({ length: 100 }, () => Buffer.from("x\n".repeat(5_000)));
  const began = performance.now();
  expect((await read([...chunks, Buffer.from("data: 1\n\n")])).frames).toMatchObject([{ data: "1" }]);
  // It takes 10 ms; an error object for each line would take 5 s.
  expect(performance.now() - began).toBeLessThan(1_000);
});
