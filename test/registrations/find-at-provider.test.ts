import { describe, expect, it } from "vitest";
import { listAtProvider } from "../../src/registrations/find-at-provider.ts";
import type { StepResult } from "../../src/registrations/provider.ts";
import { type PresetRegistration, presetRegistrationSchema } from "../../src/verify/preset-registration.ts";

type Next = NonNullable<PresetRegistration["list"]>["next"];

/** Settings of a list whose pages contain two items. */
const listWith = (next: Next) =>
  presetRegistrationSchema.shape.list.unwrap().parse({
    method: "GET",
    path: "/hooks",
    query: { size: "2" },
    itemsPath: "$.items",
    idPath: "$.id",
    addressPath: "$.url",
    ...(next !== undefined && { next }),
  });

const ITEMS = [1, 2, 3, 4, 5].map((number) => ({ id: `${number}`, url: `https://example.com/${number}` }));

/** Returns the page that begins at an item. */
function pageAt(start: number): StepResult {
  const end = start + 2;
  const url = end < ITEMS.length ? `https://api.example.com/hooks?start=${end}` : undefined;
  const page = { items: ITEMS.slice(start, end), next: url, ...(url && { meta: { cursor: end } }) };
  return { ok: true, body: page, nextUrl: url };
}

describe("the list of a provider", () => {
  it.each<[string, Next, number]>([
    ["the header Link", "link", 5],
    ["a URL in the body", "$.next", 5],
    ["a cursor in the body", { query: "start", path: "$.meta.cursor" }, 5],
    ["the first page only", undefined, 2],
  ])("is read by %s", async (_, next, count) => {
    const found = await listAtProvider(listWith(next), async (step, url) => {
      expect(step.query).toMatchObject({ size: "2" });
      const start = url === undefined ? step.query.start : new URL(url).searchParams.get("start");
      return pageAt(Number(start ?? 0));
    });
    expect(found.ok && found.value.map(({ id }) => id)).toEqual(ITEMS.slice(0, count).map(({ id }) => id));
  });

  it("takes the last part of a URL as id", async () => {
    const items = [{ id: "https://api.example.com/hooks/7?expand=all", url: "https://example.com/7" }];
    const found = await listAtProvider(listWith(undefined), async () => ({
      ok: true,
      body: { items },
      nextUrl: undefined,
    }));
    expect(found).toMatchObject({ ok: true, value: [{ id: "7", address: "https://example.com/7" }] });
  });

  it("fails after 20 pages", async () => {
    const found = await listAtProvider(listWith("link"), async () => pageAt(0));
    expect(found).toMatchObject({ ok: false, error: { code: "too_many" } });
  });
});
