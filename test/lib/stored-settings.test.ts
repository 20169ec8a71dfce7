import { describe, expect, it } from "vitest";
import { pollingSettings } from "../../src/channels/polling/settings/settings.ts";
import { sseSettings } from "../../src/channels/sse/settings.ts";
import { readStoredSettings } from "../../src/lib/stored-settings.ts";

const URL = "https://api.example.com/items";
const polling = {
  request: { url: URL, headers: { "x-a": "a" } },
  discriminator: { by: "sequence", path: "$.id" },
};

describe("readStoredSettings", () => {
  it("returns valid settings with the current default values, and lists no setting as outdated", () => {
    const read = readStoredSettings(pollingSettings, polling);
    expect(read).toMatchObject({ ok: true, value: { outdated: [], settings: { startAt: "now" } } });
  });

  it("keeps values that are no longer valid, and lists them as outdated", () => {
    const stored = { ...polling, request: { url: URL, headers: { "x-a": "a", "x-b": " b " } } };
    expect(pollingSettings.safeParse(stored).success).toBe(false);
    expect(readStoredSettings(pollingSettings, stored)).toMatchObject({
      ok: true,
      value: {
        settings: { request: { method: "GET", headers: { "x-a": "a", "x-b": " b " } } },
        outdated: [{ path: "request.headers.x-b" }],
      },
    });
  });

  it("keeps values that are no longer valid in combination, and lists them as outdated", () => {
    const stored = { url: URL, resume: { mode: "lastEventId", param: "after" } };
    const read = readStoredSettings(sseSettings, stored);
    expect(read).toMatchObject({
      ok: true,
      value: { settings: { resume: { param: "after" } }, outdated: [{ path: "resume.param" }] },
    });
  });

  it("drops settings that no longer exist", () => {
    const read = readStoredSettings(sseSettings, {
      url: URL,
      resume: { mode: "query", param: "a", old: 1 },
      gone: 2,
    });
    expect(read).toMatchObject({ ok: true, value: { settings: { resume: { param: "a" } } } });
    expect(read.ok && Object.keys(read.value.settings)).not.toContain("gone");
    expect(read.ok && read.value.outdated.map(({ path }) => path)).toEqual(["resume.old", "gone"]);
  });

  it("does not modify the object that is passed to it", () => {
    const stored = { url: URL, eventNames: ["a", "b\n"] };
    const before = structuredClone(stored);
    expect(readStoredSettings(sseSettings, stored)).toMatchObject({
      ok: true,
      value: { settings: { eventNames: ["a", "b\n"] } },
    });
    expect(stored).toEqual(before);
  });

  it("returns an error if a required setting is missing", () => {
    const read = readStoredSettings(pollingSettings, { discriminator: polling.discriminator });
    expect(read).toMatchObject({ ok: false, error: [{ path: "request" }] });
  });
});
