import { describe, expect, it } from "vitest";
import { createChannelId, createChannelIdCheck } from "../../../src/lib/secrets/channel-id.ts";

const key = Buffer.alloc(32, 1);

describe("a channel id with a keyed check code", () => {
  it("is unique, has the documented form, and is valid under the key that created it", () => {
    const ids = new Set(Array.from({ length: 100 }, () => createChannelId(key)));
    expect(ids.size).toBe(100);
    for (const id of ids) {
      expect(id).toMatch(/^ch_[a-z0-9]{36}$/);
      expect(createChannelIdCheck(key)(id)).toBe(true);
    }
  });

  it("is invalid under another key", () => {
    expect(createChannelIdCheck(Buffer.alloc(32, 2))(createChannelId(key))).toBe(false);
  });

  it("is invalid if one character is changed", () => {
    const id = createChannelId(key);
    for (let i = 0; i < id.length; i++) {
      for (const other of ["0", "z", "é", "-"]) {
        if (id[i] === other) continue;
        expect(createChannelIdCheck(key)(id.slice(0, i) + other + id.slice(i + 1))).toBe(false);
      }
    }
  });

  it.each([
    "",
    "ch_",
    "x".repeat(39),
    `ch_${"0".repeat(36)}`,
    `ch_${"0".repeat(10_000)}`,
  ])("is not accepted in the form %j", (text) => {
    expect(createChannelIdCheck(key)(text)).toBe(false);
  });
});
