/**
 * The body of a response, read with backpressure. A process can have thousands of open streams. This interface needs several
 * kilobytes less memory per stream than a `ReadableStream`.
 */
export interface Body {
  /** Resolves with the next bytes, or with `undefined` at the end of the body. Only one read may be pending at a time. */
  readonly read: () => Promise<Uint8Array | undefined>;
  /**
   * Discards the rest of the body. A pending read and all later reads then resolve with `undefined`. Never rejects, even after
   * an error.
   */
  readonly cancel: () => Promise<void>;
}

/** Converts a body to a `ReadableStream` without buffering. Each read of the stream reads one chunk of the body. */
export const toWebStream = (body: Body): ReadableStream<Uint8Array> =>
  new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const chunk = await body.read();
        if (chunk === undefined) controller.close();
        else controller.enqueue(chunk);
      },
      cancel: () => body.cancel(),
    },
    { highWaterMark: 0 },
  );

export function fromWebStream(stream: ReadableStream<Uint8Array>): Body {
  const reader = stream.getReader();
  return {
    read: async () => (await reader.read()).value,
    // Ignore the rejection, so that `cancel` does not fail. A stream with an error rejects here and also on every read.
    cancel: () => reader.cancel().catch(() => {}),
  };
}

export async function readWhole(body: Body): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for (let chunk = await body.read(); chunk !== undefined; chunk = await body.read()) chunks.push(chunk);
  return Buffer.concat(chunks);
}
