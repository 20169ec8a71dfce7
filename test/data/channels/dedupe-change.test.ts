import { describe, expect, it } from "vitest";
import { toDedupeChange } from "../../../src/data/channels/dedupe-change.ts";

const NOW = Date.UTC(2026, 0, 31);
const channelWith = (dedupe: object, changed?: { readonly agoSeconds: number; readonly kept: number }) => ({
  config: { dedupe },
  events: [{ type: "e", idPath: "$.id" }],
  dedupeChangedAt: changed === undefined ? null : new Date(NOW - changed.agoSeconds * 1_000),
  dedupeKeptSeconds: changed?.kept ?? null,
});
const change = (old: ReturnType<typeof channelWith>, dedupe: object, idPath = "$.id") => {
  const { dedupeChangedAt, dedupeKeptSeconds } = toDedupeChange(
    old,
    { config: { dedupe }, events: [{ type: "e", idPath }, { type: "added" }] },
    NOW,
  );
  return [dedupeChangedAt === null ? null : (NOW - dedupeChangedAt.getTime()) / 1_000, dedupeKeptSeconds];
};

describe("the stored change of a channel's deduplication", () => {
  it("stays if the window is equal or shorter", () => {
    expect(change(channelWith({}), {})).toEqual([null, null]);
    expect(change(channelWith({ windowSeconds: 100 }), { windowSeconds: 60 })).toEqual([null, null]);
    expect(change(channelWith({}, { agoSeconds: 9, kept: 5 }), {})).toEqual([9, 5]);
  });

  it("keeps earlier ids for the old window if the window is longer", () => {
    expect(change(channelWith({ windowSeconds: 100 }), { windowSeconds: 500 })).toEqual([0, 100]);
  });

  it("keeps the shortest of the windows to which the old one reaches back", () => {
    const twice = channelWith({ windowSeconds: 500 }, { agoSeconds: 60, kept: 100 });
    expect(change(twice, { windowSeconds: 1_000 })).toEqual([0, 100]);
    const longAgo = channelWith({ windowSeconds: 500 }, { agoSeconds: 501, kept: 100 });
    expect(change(longAgo, { windowSeconds: 1_000 })).toEqual([0, 500]);
  });

  it("keeps no earlier id under another rule", () => {
    expect(change(channelWith({}), { by: "content" })).toEqual([0, 0]);
    expect(change(channelWith({}), { onConflict: "publish" })).toEqual([0, 0]);
    expect(change(channelWith({}), {}, "$.other")).toEqual([0, 0]);
  });
});
