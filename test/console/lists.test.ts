import { beforeEach, expect, it, vi } from "vitest";
import { readSavedViews, removeView, saveView } from "../../src/console/kit/list/saved-views.ts";
import { resolvePreset } from "../../src/console/kit/list/time-presets.ts";

const stored = new Map<string, string>();
beforeEach(() => {
  stored.clear();
  vi.stubGlobal("localStorage", {
    getItem: (key: string) => stored.get(key) ?? null,
    setItem: (key: string, value: string) => void stored.set(key, value),
  });
});

it("a time preset becomes a start time that many milliseconds ago, and replaces another start time", () => {
  const nowMs = Date.parse("2026-01-31T08:00:00.000Z");
  expect(resolvePreset({ last: "15m", app: "app_1" }, nowMs)).toEqual({
    app: "app_1",
    from: "2026-01-31T07:45:00.000Z",
  });
  expect(resolvePreset({ last: "7d", from: "2020-01-01T00:00:00.000Z" }, nowMs)).toEqual({
    from: "2026-01-24T08:00:00.000Z",
  });
  expect(resolvePreset({ last: "toString", to: "x" }, nowMs)).toEqual({ to: "x" });
});

it("saved views are stored for each organization, with one view per name and address", () => {
  const refused = { name: " Rejected ", href: "/console/deliveries?status=refused" };
  saveView("org_1", refused);
  saveView("org_1", { name: "Rejected", href: "/console/deliveries?status=failed" });
  saveView("org_1", { name: "Failed", href: "/console/deliveries?status=failed" });
  saveView("org_1", { name: "  ", href: "/console/quarantine" });
  expect(readSavedViews("org_1")).toEqual([{ name: "Failed", href: "/console/deliveries?status=failed" }]);
  expect(readSavedViews("org_2")).toEqual([]);
  removeView("org_1", "/console/deliveries?status=failed");
  expect(readSavedViews("org_1")).toEqual([]);
});

it("saved views in an unknown form, or with an address outside of the console, are ignored", () => {
  stored.set("inlet.views.org_1", JSON.stringify([{ name: "x", href: "javascript:alert(1)" }, 7, null]));
  expect(readSavedViews("org_1")).toEqual([]);
  stored.set("inlet.views.org_1", "{");
  expect(readSavedViews("org_1")).toEqual([]);
});
