/**
 * Body of a response, read with backpressure. It takes several kilobytes less memory than a `ReadableStream`, which matters because a
 * process can have thousands of open bodies.
 */
export interface Body {
  /**
   * Resolves with the next bytes, or with `undefined` at the end of the body. Wait for each read to settle before you start the
   * next.
   */
  readonly read: () => Promise<Uint8Array | undefined>;
  /**
   * Discards the rest of the body, so that pending and later reads resolve with `undefined`. Never rejects, even after an error.
   */
  readonly cancel: () => Promise<void>;
}

/** Converts a body to a web stream. Each read of the stream reads one chunk of the body, and no chunks are buffered. */
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
    // Ignore the error of a failed stream, because every later read rejects with that error anyway.
    cancel: () => reader.cancel().catch(() => {}),
  };
}

export async function readWhole(body: Body): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for (let chunk = await body.read(); chunk !== undefined; chunk = await body.read()) chunks.push(chunk);
  return Buffer.concat(chunks);
}
