import type { StreamSink } from "./stream-client.ts";

/** The line is full once so much waits to be taken. */
const HIGH_WATER_BYTES = 256 * 1024;

export interface StreamLine extends StreamSink {
  readonly body: ReadableStream<Uint8Array>;
  /** For how long the reader has taken nothing of a full line; 0 where it is not full. */
  readonly stalledMs: () => number;
  readonly end: () => void;
}

/** A line to a reader, as the body of an answer. `onRoom`: it is no longer full; `onGone`: the reader has left. */
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
