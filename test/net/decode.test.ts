import { randomBytes } from "node:crypto";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { type Body, readWhole } from "../../src/net/body.ts";
import { boundBody, decodeBody } from "../../src/net/decode.ts";
import { until } from "../support/until.ts";

const CHUNK_BYTES = 16 * 1024;
const MAX_BYTES = 100_000;

/** A body that counts the bytes read from it. */
function countedBody(bytes: Buffer) {
  const consumed = { bytes: 0, isCanceled: false };
  const body: Body = {
    async read() {
      const chunk = bytes.subarray(consumed.bytes, consumed.bytes + CHUNK_BYTES);
      consumed.bytes += chunk.length;
      return chunk.length === 0 ? undefined : chunk;
    },
    async cancel() {
      consumed.isCanceled = true;
    },
  };
  return { body, consumed };
}

const bound = (body: Body) => boundBody(body, MAX_BYTES, (thrown) => thrown);

describe("a compressed response body that exceeds its limit", () => {
  it("is canceled soon after the limit, and not read to the end", async () => {
    const { body, consumed } = countedBody(gzipSync(randomBytes(2 * 1024 * 1024), { level: 0 }));
    await expect(readWhole(bound(decodeBody(body, "gzip")))).rejects.toMatchObject({ code: "tooLarge" });
    expect(consumed.bytes).toBeLessThan(10 * MAX_BYTES);
    await until(() => consumed.isCanceled);
  });

  it("is decompressed only up to the limit, even if its compressed form is tiny", async () => {
    const { body } = countedBody(gzipSync(Buffer.alloc(16 * 1024 * 1024)));
    let unpacked = 0;
    const decoded = decodeBody(body, "gzip");
    const counted: Body = {
      ...decoded,
      async read() {
        const chunk = await decoded.read();
        unpacked += chunk?.length ?? 0;
        return chunk;
      },
    };
    await expect(readWhole(bound(counted))).rejects.toMatchObject({ code: "tooLarge" });
    expect(unpacked).toBeGreaterThan(MAX_BYTES);
    expect(unpacked).toBeLessThan(10 * MAX_BYTES);
  });
});

it("decodeBody rejects a body with more than two content codings", () => {
  const { body } = countedBody(Buffer.from("text"));
  expect(() => decodeBody(body, "gzip, gzip, gzip")).toThrow("too many content encodings");
});
