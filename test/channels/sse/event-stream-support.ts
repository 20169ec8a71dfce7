import { EventSource, type FetchLikeResponse } from "eventsource";
import fc from "fast-check";
import { expect } from "vitest";
import {
  EventStreamParser,
  EventTooLargeError,
  type Frame,
  type StreamMessage,
} from "../../../src/channels/sse/event-stream-parser.ts";

export interface Read {
  readonly frames: { readonly event: string; readonly data: string; readonly lastEventId: string }[];
  readonly retries: number[];
  lastEventId: string;
  isTooLarge: boolean;
}

/** Parses a stream given in these chunks to its end. */
export function parse(chunks: readonly Uint8Array[], maxEventBytes = 1_000_000): Read {
  const result: Read = { frames: [], retries: [], lastEventId: "", isTooLarge: false };
  const parser = new EventStreamParser({ maxEventBytes });
  try {
    for (const chunk of chunks) for (const message of parser.read(chunk)) take(result, message);
  } catch (error) {
    if (!(error instanceof EventTooLargeError)) throw error;
    result.isTooLarge = true;
  }
  return result;
}

function take(result: Read, message: StreamMessage): void {
  switch (message.kind) {
    case "frame": {
      result.lastEventId = message.id ?? result.lastEventId;
      const { event, data } = message;
      result.frames.push({ event, data, lastEventId: result.lastEventId });
      return;
    }
    case "checkpoint":
      result.lastEventId = message.id;
      return;
    case "retry":
      result.retries.push(message.ms);
      return;
    default:
      message satisfies never;
  }
}

export const parseText = (text: string, maxEventBytes?: number): Read =>
  parse([Buffer.from(text)], maxEventBytes);

/** Literal implementation of the algorithm in WHATWG HTML, section "Interpreting an event stream", for a complete stream. */
function interpret(bytes: Uint8Array): Omit<Read, "isTooLarge"> {
  const text = new TextDecoder().decode(bytes);
  const lines = text.split(/\r\n|\n|\r/);
  // A line without a line ending is incomplete.
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

/** Checks the parser against the algorithm of the standard, with streams split at random places. */
export const parsesCutStreams = (numRuns: number): void =>
  fc.assert(
    fc.property(stream, fc.array(fc.nat(1000), { maxLength: 12 }), (bytes, places) => {
      const { isTooLarge, ...result } = parse(cut(bytes, places));
      expect(isTooLarge).toBe(false);
      expect(result).toEqual(interpret(bytes));
    }),
    { numRuns },
  );

/** Checks the parser against the algorithm of the standard, with streams split into single bytes. */
export const parsesStreamsByteByByte = (numRuns: number): void =>
  fc.assert(
    fc.property(stream, (bytes) => {
      const { isTooLarge, ...result } = parse([...bytes].map((byte) => Uint8Array.of(byte)));
      expect(isTooLarge).toBe(false);
      expect(result).toEqual(interpret(bytes));
    }),
    { numRuns },
  );

/**
 * Returns the events that the client of the `eventsource` package reads. At the start it also strips a second byte order mark and the
 * characters "ï»¿". The standard strips only one mark.
 */
function readByClient(chunks: readonly Uint8Array[]): Promise<Pick<Frame, "event" | "data">[]> {
  const { promise, resolve } = Promise.withResolvers<Pick<Frame, "event" | "data">[]>();
  const events: Pick<Frame, "event" | "data">[] = [];
  class Client extends EventSource {
    override dispatchEvent(event: Event): boolean {
      if (event instanceof MessageEvent) events.push({ event: event.type, data: event.data });
      return true;
    }
  }
  const left = chunks.values();
  async function read() {
    const next = left.next();
    if (!next.done) return { done: false, value: next.value } as const;
    client.close();
    resolve(events);
    return { done: true } as const;
  }
  const url = "http://localhost/";
  const headers = new Headers({ "content-type": "text/event-stream" });
  const body = { getReader: () => ({ read, cancel: async () => {} }) };
  const fetch = async (): Promise<FetchLikeResponse> => ({
    url,
    status: 200,
    redirected: false,
    headers,
    body,
  });
  const client = new Client(url, { fetch });
  return promise;
}

/** Checks the parser against that client, with streams without byte order marks that are split at random places. */
export const parsesAsTheClientDoes = (numRuns: number): Promise<void> =>
  fc.assert(
    fc.asyncProperty(
      stream.filter((bytes) => !bytes.includes("\uFEFF") && !bytes.subarray(0, 6).equals(Buffer.from("ï»¿"))),
      fc.array(fc.nat(1000), { maxLength: 12 }),
      async (bytes, places) => {
        const chunks = cut(bytes, places);
        const frames = parse(chunks).frames.map(({ event, data }) => ({ event, data }));
        expect(frames).toEqual(await readByClient(chunks));
      },
    ),
    { numRuns },
  );
