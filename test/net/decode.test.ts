import { randomBytes } from "node:crypto";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { boundBody, decodeBody } from "../../src/net/decode.ts";
import { until } from "../support/until.ts";

const CHUNK_BYTES = 16 * 1024;
const MAX_BYTES = 100_000;

/** A body that counts the bytes that were asked of it. */
function countedBody(bytes: Buffer) {
  const asked = { bytes: 0, isCancelled: false };
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const chunk = bytes.subarray(asked.bytes, asked.bytes + CHUNK_BYTES);
        asked.bytes += chunk.length;
        if (chunk.length === 0) controller.close();
        else controller.enqueue(chunk);
      },
      cancel: () => {
        asked.isCancelled = true;
      },
    },
    { highWaterMark: 0 },
  );
  return { body, asked };
}

async function readAll(body: ReadableStream<Uint8Array>): Promise<number> {
  let bytes = 0;
  for await (const chunk of body) bytes += chunk.length;
  return bytes;
}

const bound = (body: ReadableStream<Uint8Array>) => boundBody(body, MAX_BYTES, (thrown) => thrown);

describe("a body that is larger than its bound", () => {
  it("is asked for no more than a little past the bound, and then cancelled", async () => {
    const { body, asked } = countedBody(gzipSync(randomBytes(2 * 1024 * 1024), { level: 0 }));
    await expect(readAll(bound(decodeBody(body, "gzip")))).rejects.toMatchObject({ code: "tooLarge" });
    expect(asked.bytes).toBeLessThan(10 * MAX_BYTES);
    await until(() => asked.isCancelled);
  });

  it("is unpacked no further, however small it was packed", async () => {
    const { body } = countedBody(gzipSync(Buffer.alloc(16 * 1024 * 1024)));
    let unpacked = 0;
    const counted = decodeBody(body, "gzip").pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        transform(chunk, controller) {
          unpacked += chunk.length;
          controller.enqueue(chunk);
        },
      }),
    );
    await expect(readAll(bound(counted))).rejects.toMatchObject({ code: "tooLarge" });
    expect(unpacked).toBeGreaterThan(MAX_BYTES);
    expect(unpacked).toBeLessThan(10 * MAX_BYTES);
  });
});

it("a body in more than two codings is refused", () => {
  const { body } = countedBody(Buffer.from("text"));
  expect(() => decodeBody(body, "gzip, gzip, gzip")).toThrow("too many content encodings");
});
