import fc from "fast-check";
import { expect } from "vitest";
import { type FrameListener, readFrames } from "../../../src/channels/sse/frames.ts";

export interface Read {
  readonly frames: { readonly event: string; readonly data: string; readonly lastEventId: string }[];
  readonly retries: number[];
  lastEventId: string;
  isTooLarge: boolean;
}

/** Reads a stream that comes in these chunks, to its end. */
export async function readTo(
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

export async function read(chunks: readonly Uint8Array[], maxEventBytes = 1_000_000): Promise<Read> {
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

export const readText = (text: string, maxEventBytes?: number): Promise<Read> =>
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

/** Reads any streams as the standard reads them, each cut anywhere. */
export const readsCutStreams = (numRuns: number): Promise<void> =>
  fc.assert(
    fc.asyncProperty(stream, fc.array(fc.nat(1000), { maxLength: 12 }), async (bytes, places) => {
      const { isTooLarge, ...result } = await read(cut(bytes, places));
      expect(isTooLarge).toBe(false);
      expect(result).toEqual(interpret(bytes));
    }),
    { numRuns },
  );

/** The same, each cut everywhere. */
export const readsStreamsByteByByte = (numRuns: number): Promise<void> =>
  fc.assert(
    fc.asyncProperty(stream, async (bytes) => {
      const { isTooLarge, ...result } = await read([...bytes].map((byte) => Uint8Array.of(byte)));
      expect(isTooLarge).toBe(false);
      expect(result).toEqual(interpret(bytes));
    }),
    { numRuns },
  );
