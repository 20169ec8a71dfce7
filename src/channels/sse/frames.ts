import { ErrorEvent, EventSource, type EventSourceInit, type FetchLikeResponse } from "eventsource";
import { BlockQueue } from "./blocks.ts";
import { withoutByteOrderMark } from "./byte-order-mark.ts";
import { FieldReader } from "./fields.ts";

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

export interface FrameSource {
  readonly url: string;
  readonly maxEventBytes: number;
  /** Asks for the stream, once. Undefined where there is none to read. */
  readonly open: () => Promise<AsyncIterable<Uint8Array> | undefined>;
  /** Undefined where more may be read now; else resolves as soon as that is so. */
  readonly room: () => Promise<void> | undefined;
  /** Ends the reading; the body is to end with it. */
  readonly signal: AbortSignal;
}

/** Read at once before it is looked whether more may be: the smallest frame has 7 bytes, so that the bounds hold roughly. */
const PIECE_BYTES = 8 * 1024;
/** A line may begin with this before its data. */
const DATA_PREFIX = "data: ";
/** What one character of JavaScript's takes in UTF-8 at most. */
const MAX_BYTES_A_CHAR = 3;
/** All that the client asks about an answer: whether the server's is an event stream is known before. */
const ANSWER = {
  status: 200,
  redirected: false,
  headers: new Headers({ "content-type": "text/event-stream" }),
} as const;

/** The client tells events to listeners by their names: this tells all of them, whatever the server calls them. */
class Client extends EventSource {
  readonly #onEvent: (event: Event) => void;

  constructor(url: string, init: EventSourceInit, onEvent: (event: Event) => void) {
    super(url, init);
    this.#onEvent = onEvent;
  }

  override dispatchEvent(event: Event): boolean {
    this.#onEvent(event);
    return true;
  }
}

/**
 * Reads one connection's event stream with the client of the `eventsource` package, by the processing model of WHATWG HTML, section
 * "Server-sent events". It holds no more than one event of `maxEventBytes`; whatever is incomplete at the end was never an event.
 *
 * The client is given the body through a gate: a piece when all events of the one before are taken and there is room. What it keeps
 * to itself and an exact resumption needs is read there: the `retry`, ids that come without data, and whether an event brought its
 * id or had it from before. It never connects again by itself: it is closed before it can see the end.
 *
 * @throws what `open`, the body or the listener throws
 */
export async function readFrames(source: FrameSource, listener: FrameListener): Promise<void> {
  const { maxEventBytes, open, room, signal, url } = source;
  const reading = Promise.withResolvers<void>();
  /** Of the piece that the client is reading, what it has not told yet. */
  const blocks = new BlockQueue(listener.onCheckpoint);
  const fields = new FieldReader({ onBlock: (block) => blocks.add(block), onRetry: listener.onRetry });
  let isDone = false;

  async function* gate(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    // The client would take a second byte order mark away, or what looks like one in Latin-1: not from a stream that has begun.
    yield Buffer.from("\n");
    for await (const chunk of withoutByteOrderMark(body)) {
      for (let at = 0; at < chunk.length && !signal.aborted; at += PIECE_BYTES) {
        const length = Math.min(PIECE_BYTES, chunk.length - at);
        const text = fields.read(Buffer.from(chunk.buffer, chunk.byteOffset + at, length));
        if (text !== "") yield Buffer.from(text, "latin1");
        if (isDone) return;
        blocks.settle();
        await room();
      }
      if (signal.aborted) return;
    }
  }

  async function connect(): Promise<FetchLikeResponse> {
    const body = await open().catch(fail);
    if (body === undefined) finish();
    const pieces = body && gate(body);
    const read = async () => {
      const next = await pieces?.next().catch(fail);
      if (next?.done === false) return { done: false, value: next.value } as const;
      finish();
      return { done: true } as const;
    };
    return { ...ANSWER, url, body: { getReader: () => ({ read, cancel: async () => {} }) } };
  }

  function take(event: Event): void {
    if (isDone) return;
    if (event instanceof MessageEvent) {
      const { id } = blocks.next();
      const { data, lastEventId, type } = event;
      if (isTooLarge(data, maxEventBytes)) refuse();
      else listener.onFrame({ event: type, data, id: id === undefined ? undefined : lastEventId });
    } else if (event instanceof ErrorEvent) {
      // Its own, not one that the server calls so: all it can still complain about is how much it is to keep.
      blocks.tellCheckpoints();
      refuse();
    }
  }

  function refuse(): void {
    isDone = true;
    listener.onTooLarge();
  }

  function finish(): void {
    isDone = true;
    client.close();
    reading.resolve();
  }

  function fail(error: unknown): undefined {
    reading.reject(error);
    finish();
  }

  const client = new Client(
    url,
    { fetch: connect, maxBufferSize: maxEventBytes + DATA_PREFIX.length },
    (event) => {
      try {
        take(event);
      } catch (error) {
        fail(error);
      }
    },
  );
  await reading.promise;
}

const isTooLarge = (data: string, maxBytes: number): boolean =>
  data.length * MAX_BYTES_A_CHAR > maxBytes && Buffer.byteLength(data) > maxBytes;
