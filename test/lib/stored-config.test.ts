import { describe, expect, it } from "vitest";
import { pollingConfigSchema } from "../../src/channels/polling/config/config.ts";
import { sseConfigSchema } from "../../src/channels/sse/config.ts";
import { readStoredConfig } from "../../src/lib/stored-config.ts";

const URL = "https://api.example.com/items";
const polling = {
  request: { url: URL, headers: { "x-a": "a" } },
  discriminator: { by: "sequence", path: "$.id" },
};

describe("readStoredConfig", () => {
  it("returns valid settings with the current default values, and lists no setting as outdated", () => {
    const read = readStoredConfig(pollingConfigSchema, polling);
    expect(read).toMatchObject({ ok: true, value: { outdated: [], config: { startAt: "now" } } });
  });

  it("keeps values that are no longer valid, and lists them as outdated", () => {
    const stored = { ...polling, request: { url: URL, headers: { "x-a": "a", "x-b": " b " } } };
    expect(pollingConfigSchema.safeParse(stored).success).toBe(false);
    expect(readStoredConfig(pollingConfigSchema, stored)).toMatchObject({
      ok: true,
      value: {
        config: { request: { method: "GET", headers: { "x-a": "a", "x-b": " b " } } },
        outdated: [{ path: "request.headers.x-b" }],
      },
    });
  });

  it("keeps values that are no longer valid in combination, and lists them as outdated", () => {
    const stored = { url: URL, resume: { mode: "lastEventId", param: "after" } };
    const read = readStoredConfig(sseConfigSchema, stored);
    expect(read).toMatchObject({
      ok: true,
      value: { config: { resume: { param: "after" } }, outdated: [{ path: "resume.param" }] },
    });
  });

  it("drops settings that no longer exist", () => {
    const read = readStoredConfig(sseConfigSchema, {
      url: URL,
      resume: { mode: "query", param: "a", old: 1 },
      gone: 2,
    });
    expect(read).toMatchObject({ ok: true, value: { config: { resume: { param: "a" } } } });
    expect(read.ok && Object.keys(read.value.config)).not.toContain("gone");
    expect(read.ok && read.value.outdated.map(({ path }) => path)).toEqual(["resume.old", "gone"]);
  });

  it("does not modify the object that is passed to it", () => {
    const stored = { url: URL, eventNames: ["a", "b\n"] };
    const before = structuredClone(stored);
    expect(readStoredConfig(sseConfigSchema, stored)).toMatchObject({
      ok: true,
      value: { config: { eventNames: ["a", "b\n"] } },
    });
    expect(stored).toEqual(before);
  });

  it("returns an error if a required setting is missing", () => {
    const read = readStoredConfig(pollingConfigSchema, { discriminator: polling.discriminator });
    expect(read).toMatchObject({ ok: false, error: [{ path: "request" }] });
  });
});
