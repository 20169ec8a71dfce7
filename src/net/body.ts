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

export async function readWhole(body: Body): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for (let chunk = await body.read(); chunk !== undefined; chunk = await body.read()) chunks.push(chunk);
  return Buffer.concat(chunks);
}
