import { TextDecoder } from "node:util";
import { createParser } from "eventsource-parser";

/** One event of the stream. */
export interface Frame {
  /** `message` where the stream names none. */
  readonly event: string;
  readonly data: string;
  /** What its own block says; undefined where it says nothing, and the id of before carries over. */
  readonly id: string | undefined;
}

export interface FrameListener {
  readonly onFrame: (frame: Frame) => void;
  /** A block without data has set the last event id. */
  readonly onCheckpoint: (id: string) => void;
  readonly onRetry: (ms: number) => void;
  /** More than `maxEventBytes` of data; nothing can be read after it. */
  readonly onTooLarge: () => void;
}

export interface FrameReader {
  /** Reads on. Chunks may be cut anywhere. Whatever is incomplete when no more come was never an event. */
  read(chunk: Uint8Array): void;
}

/** A line may begin with this before its data. */
const DATA_PREFIX = "data: ";
/** What one character of JavaScript's takes in UTF-8 at most. */
const MAX_BYTES_A_CHAR = 3;

/**
 * Reads an event stream by the processing model of WHATWG HTML, section "Server-sent events". It holds no more than one event of
 * `maxEventBytes`.
 *
 * The parser is the one inside the `eventsource` package, whose client keeps to itself what an exact resumption needs: the
 * `retry` it was told, ids that come without data, and whether an event brought its id or had it from before.
 */
export function createFrameReader(maxEventBytes: number, listener: FrameListener): FrameReader {
  const { onCheckpoint, onFrame, onRetry, onTooLarge } = listener;
  // It takes one byte order mark away, wherever it is cut, and makes U+FFFD of what is not UTF-8.
  const decoder = new TextDecoder();
  /** Of a block whose data, if it has any, is told next. */
  let blockId: string | undefined;
  let isDone = false;

  const checkpoint = (): void => {
    if (blockId !== undefined) onCheckpoint(blockId);
    blockId = undefined;
  };
  const refuse = (): void => {
    isDone = true;
    onTooLarge();
  };
  const isTooLarge = (data: string): boolean =>
    data.length * MAX_BYTES_A_CHAR > maxEventBytes && Buffer.byteLength(data) > maxEventBytes;

  const parser = createParser({
    maxBufferSize: maxEventBytes + DATA_PREFIX.length,
    onRetry,
    onId(id) {
      checkpoint();
      blockId = id;
    },
    onEvent({ id, event = "message", data }) {
      if (id === undefined) checkpoint();
      else blockId = undefined;
      if (isDone) return;
      if (isTooLarge(data)) refuse();
      else onFrame({ event, data, id });
    },
  });
  /** It throws at what it is fed next. Its `onError` tells so too, but makes an error of each field it does not know: 5 µs for two bytes. */
  const hasGivenUp = (): boolean => {
    try {
      parser.feed("");
      return false;
    } catch {
      return true;
    }
  };
  // The parser would take a second byte order mark away, or what looks like one in Latin-1: not from a stream that has begun.
  parser.feed("\n");

  return {
    read(chunk) {
      if (isDone) return;
      parser.feed(decoder.decode(chunk, { stream: true }));
      checkpoint();
      if (!isDone && hasGivenUp()) refuse();
    },
  };
}
