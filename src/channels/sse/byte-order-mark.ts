const MARK = Buffer.of(0xef, 0xbb, 0xbf);

/** The body without the one byte order mark that may begin it (WHATWG Encoding, "UTF-8 decode"), wherever that is cut. */
export async function* withoutByteOrderMark(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  /** Until it can be told whether it is the mark. */
  let head: Buffer | undefined = Buffer.alloc(0);
  for await (const chunk of body) {
    if (head === undefined) {
      yield chunk;
      continue;
    }
    head = Buffer.concat([head, chunk]);
    if (head.length < MARK.length && MARK.subarray(0, head.length).equals(head)) continue;
    const isMarked = head.subarray(0, MARK.length).equals(MARK);
    yield isMarked ? head.subarray(MARK.length) : head;
    head = undefined;
  }
}
