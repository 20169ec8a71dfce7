import { createHmac } from "node:crypto";
import { expect, it } from "vitest";
import { compileHmac } from "../../../src/lib/secrets/hmac.ts";

const ALGORITHMS = ["md5", "sha1", "sha256", "sha384", "sha512"] as const;
const KEYS = [0, 1, 63, 64, 65, 127, 128, 129, 300].map((length) => Buffer.alloc(length, "kéy"));
const MESSAGES = [
  [],
  [""],
  ["a text with ü", Buffer.from([0, 255])],
  [Buffer.alloc(70_000, 7), "end"],
  ["é".repeat(2_800)],
];

it.each(
  ALGORITHMS,
)("compileHmac with %s computes the same HMAC as node:crypto for any key and message", (algorithm) => {
  for (const key of KEYS) {
    const hmac = compileHmac(algorithm, key);
    for (const pieces of MESSAGES) {
      const expected = createHmac(algorithm, key);
      for (const piece of pieces) expected.update(piece);
      expect(hmac(pieces).equals(expected.digest())).toBe(true);
    }
  }
  const text = "a secret, as ténants write it";
  expect(compileHmac(algorithm, text)(["x"])).toEqual(createHmac(algorithm, text).update("x").digest());
});
