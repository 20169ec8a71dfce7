import type { StreamSink } from "./stream-client.ts";

/** Number of unsent bytes at which `isFull` returns true. */
const HIGH_WATER_BYTES = 256 * 1024;

export interface StreamLine extends StreamSink {
  readonly body: ReadableStream<Uint8Array>;
  /** Returns the time since the client last accepted data, in ms. Returns 0 while the output is not full. */
  readonly stalledMs: () => number;
  readonly end: () => void;
}

/**
 * Creates the response body of an event stream.
 * @param on.onRoom called when the output can accept data again
 * @param on.onGone called when the client has disconnected
 */
export function createStreamLine(on: {
  readonly onRoom: () => void;
  readonly onGone: () => void;
}): StreamLine {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  let takenAtMs = performance.now();
  let isOpen = true;
  const isFull = (): boolean => !isOpen || (controller?.desiredSize ?? 0) <= 0;
  const body = new ReadableStream<Uint8Array>(
    {
      start(given) {
        controller = given;
      },
      pull() {
        takenAtMs = performance.now();
        if (isOpen) on.onRoom();
      },
      cancel() {
        isOpen = false;
        on.onGone();
      },
    },
    new ByteLengthQueuingStrategy({ highWaterMark: HIGH_WATER_BYTES }),
  );
  return {
    body,
    isFull,
    stalledMs: () => (isFull() ? performance.now() - takenAtMs : 0),
    write(text) {
      if (isOpen) controller?.enqueue(Buffer.from(text));
    },
    end() {
      if (!isOpen) return;
      isOpen = false;
      controller?.close();
    },
  };
}
