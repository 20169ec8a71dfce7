import { describe, expect, it } from "vitest";
import { createSealingKey, openSecret, sealSecret } from "../../../src/lib/secrets/secret.ts";

const key = createSealingKey(Buffer.alloc(32, 1));

describe("an encrypted secret", () => {
  it("is decrypted with the key and database row with which it was encrypted", () => {
    expect(openSecret(key, sealSecret(key, "grüße \u{1f511}", "rows/1"), "rows/1")).toBe("grüße \u{1f511}");
    expect(openSecret(key, sealSecret(key, "", "rows/1"), "rows/1")).toBe("");
  });

  it("differs at each encryption and does not contain the plain text", () => {
    const [first, second] = [sealSecret(key, "s3cret", "rows/1"), sealSecret(key, "s3cret", "rows/1")];
    expect(first).not.toBe(second);
    expect(first).toMatch(/^s1\.[0-9a-f]{16}\.[A-Za-z0-9_-]+$/);
    expect(first).not.toContain("s3cret");
  });

  it("cannot be decrypted if it was copied to another database row", () => {
    expect(() => openSecret(key, sealSecret(key, "s3cret", "rows/1"), "rows/2")).toThrow("another row");
  });

  it("cannot be decrypted with another key, and the error contains only the ids of the keys", () => {
    const other = createSealingKey(Buffer.alloc(32, 2));
    expect(() => openSecret(other, sealSecret(key, "s3cret", "rows/1"), "rows/1")).toThrow(
      `encrypted under key ${key.id}, not under key ${other.id}`,
    );
  });

  it("cannot be decrypted if a single bit differs", () => {
    const sealed = sealSecret(key, "s3cret", "rows/1");
    const start = sealed.lastIndexOf(".") + 1;
    const bytes = Buffer.from(sealed.slice(start), "base64url");
    for (let i = 0; i < bytes.length; i++) {
      const changed = Buffer.from(bytes);
      changed.writeUInt8(changed.readUInt8(i) ^ 1, i);
      expect(() =>
        openSecret(key, sealed.slice(0, start) + changed.toString("base64url"), "rows/1"),
      ).toThrow();
    }
  });

  it.each([
    "",
    "s1",
    "plain text",
    "s1.0000.a.b",
    `s1.${key.id}.AAAA`,
  ])("cannot be decrypted from the malformed text %j", (text) => {
    expect(() => openSecret(key, text, "rows/1")).toThrow();
  });

  it("is encrypted only with a key of 32 bytes", () => {
    expect(() => createSealingKey(Buffer.alloc(16))).toThrow("32 bytes");
  });
});
