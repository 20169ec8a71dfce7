/**
 * Body of a response, read with backpressure. It is simpler than a `ReadableStream`, which needs several kilobytes more, because a
 * process can have thousands of open streams.
 */
export interface Body {
  /** Resolves with the next bytes, or `undefined` at the end. Allows one pending read at a time. */
  readonly read: () => Promise<Uint8Array | undefined>;
  /** Discards the rest. A pending read and all later reads resolve with `undefined`. Never rejects, even after an error. */
  readonly cancel: () => Promise<void>;
}

/** Converts a body to a `ReadableStream` without buffering: each read of the stream reads one chunk. */
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
    // An errored stream rejects here and on every read; ignoring the rejection keeps `cancel` from failing.
    cancel: () => reader.cancel().catch(() => {}),
  };
}

export async function readWhole(body: Body): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for (let chunk = await body.read(); chunk !== undefined; chunk = await body.read()) chunks.push(chunk);
  return Buffer.concat(chunks);
}
