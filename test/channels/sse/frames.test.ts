import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createFrameReader } from "../../../src/channels/sse/frames.ts";

interface Read {
  readonly frames: { readonly event: string; readonly data: string; readonly lastEventId: string }[];
  readonly retries: number[];
  lastEventId: string;
  isTooLarge: boolean;
}

function read(chunks: readonly Uint8Array[], maxEventBytes = 1_000_000): Read {
  const result: Read = { frames: [], retries: [], lastEventId: "", isTooLarge: false };
  const reader = createFrameReader(maxEventBytes, {
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
  });
  for (const chunk of chunks) reader.read(chunk);
  return result;
}

const readText = (text: string, maxEventBytes?: number): Read => read([Buffer.from(text)], maxEventBytes);

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
  it("is read as the standard reads it, wherever it is cut", () => {
    fc.assert(
      fc.property(stream, fc.array(fc.nat(1000), { maxLength: 12 }), (bytes, places) => {
        const { isTooLarge, ...result } = read(cut(bytes, places));
        expect(isTooLarge).toBe(false);
        expect(result).toEqual(interpret(bytes));
      }),
      { numRuns: 5_000 },
    );
  });

  it("is read as the standard reads it, byte by byte", () => {
    fc.assert(
      fc.property(stream, (bytes) => {
        const { isTooLarge, ...result } = read([...bytes].map((byte) => Uint8Array.of(byte)));
        expect(isTooLarge).toBe(false);
        expect(result).toEqual(interpret(bytes));
      }),
      { numRuns: 1_000 },
    );
  });

  it("loses one byte order mark at its beginning, and no second one", () => {
    expect(readText("\uFEFFdata: 1\n\n").frames).toMatchObject([{ data: "1" }]);
    expect(readText("\uFEFF\uFEFFdata: 1\n\ndata: 2\n\n").frames).toMatchObject([{ data: "2" }]);
    expect(readText("ï»¿data: 1\n\ndata: 2\n\n").frames).toMatchObject([{ data: "2" }]);
  });

  it("tells an id that an event brings from one that comes alone or carries over", () => {
    const told: unknown[] = [];
    const reader = createFrameReader(100, {
      onFrame: ({ id }) => told.push(["frame", id]),
      onCheckpoint: (id) => told.push(["checkpoint", id]),
      onRetry: () => {},
      onTooLarge: () => {},
    });
    reader.read(
      Buffer.from(
        "id: 1\ndata: a\n\ndata: b\n\nid: 2\n\ndata: c\n\nid: 3\n\nid: 4\n\nid: 4\ndata: d\n\nid\n\n",
      ),
    );
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

describe("an event that is too large", () => {
  it("is refused to the byte, in one line or in many", () => {
    const exact = "é".repeat(50);
    expect(readText(`data: ${exact}\n\n`, 100)).toMatchObject({
      isTooLarge: false,
      frames: [{ data: exact }],
    });
    expect(readText(`data: ${exact}x\n\n`, 100)).toMatchObject({ isTooLarge: true, frames: [] });
    expect(readText("data: 12345\n".repeat(20), 100).isTooLarge).toBe(true);
    expect(readText(`data: ${"x\ndata: ".repeat(49)}xx\n\n`, 100).isTooLarge).toBe(false);
  });

  it("ends the reading: what comes after it is not taken", () => {
    const { frames, isTooLarge } = readText(`data: 1\n\ndata: ${"x".repeat(101)}\n\ndata: 2\n\n`, 100);
    expect(isTooLarge).toBe(true);
    expect(frames.map(({ data }) => data)).toEqual(["1"]);
  });

  it("is told while its line is still coming, however long that goes on", () => {
    const chunk = Buffer.from("x".repeat(1000));
    const result = read([Buffer.from("data: "), ...Array.from({ length: 100 }, () => chunk)], 5_000);
    expect(result.isTooLarge).toBe(true);
  });

  it("is no comment and no unknown field, of which nothing is kept", () => {
    const chunk = Buffer.from("x".repeat(1000));
    const long = Array.from({ length: 100 }, () => chunk);
    const chunks = [
      Buffer.from(": "),
      ...long,
      Buffer.from("\nunknown"),
      ...long,
      Buffer.from("\ndata: 1\n\n"),
    ];
    expect(read(chunks, 5_000)).toMatchObject({ isTooLarge: false, frames: [{ data: "1" }] });
  });
});

it("costs little where it is made of what is no field: a sender cannot keep the gateway busy with that", () => {
  const chunks = Array.from({ length: 100 }, () => Buffer.from("x\n".repeat(5_000)));
  const began = performance.now();
  expect(read([...chunks, Buffer.from("data: 1\n\n")]).frames).toMatchObject([{ data: "1" }]);
  // It takes 10 ms; an error object for each line would take 5 s.
  expect(performance.now() - began).toBeLessThan(1_000);
});
