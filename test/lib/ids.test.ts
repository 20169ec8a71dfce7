import { describe, expect, it } from "vitest";
import { createId, isId, timeOfId } from "../../src/lib/ids.ts";

const NOW = Date.parse("2026-03-01T12:00:00.000Z");

describe("createId", () => {
  it("creates unique ids even within one millisecond", () => {
    const ids = Array.from({ length: 5000 }, () => createId("evt", NOW));
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("creates ids that contain their creation time and sort by it", () => {
    const [earlier, later] = [createId("evt", NOW), createId("evt", NOW + 1)];
    expect(timeOfId(earlier)).toBe(NOW);
    expect(earlier < later).toBe(true);
  });

  it("creates ids that isId() accepts only with the right prefix and length", () => {
    const id = createId("evt", NOW);
    expect(isId("evt", id)).toBe(true);
    expect(isId("app", id)).toBe(false);
    expect(isId("evt", `${id}0`)).toBe(false);
  });
});
