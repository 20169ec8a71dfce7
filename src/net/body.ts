/**
 * The body of an answer as it comes, no faster than it is read. It is held for as long as a stream is open, thousands of times: a
 * `ReadableStream` takes several kilobytes more.
 */
export interface Body {
  /** The next bytes, undefined at the end. One read at a time. */
  readonly read: () => Promise<Uint8Array | undefined>;
  /** The rest is not wanted: a read under way answers the end, and so does each after it. Never rejects, also once it is broken. */
  readonly cancel: () => Promise<void>;
}

/** The same as the Fetch standard has it. It holds nothing: each chunk is asked for when it is read. */
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
    // One that is broken says so to each who reads; there is nothing left to cancel.
    cancel: () => reader.cancel().catch(() => {}),
  };
}

export async function readWhole(body: Body): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for (let chunk = await body.read(); chunk !== undefined; chunk = await body.read()) chunks.push(chunk);
  return Buffer.concat(chunks);
}
