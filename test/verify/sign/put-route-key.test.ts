import { describe, expect, it } from "vitest";
import { explainRoutes } from "../../../src/normalize/explain-routes.ts";
import { compileRoutes } from "../../../src/normalize/routes.ts";
import { putRouteKey } from "../../../src/verify/sign/put-route-key.ts";
import { deliveryOf, rulesOf } from "../../normalize/support.ts";
import { sharedPresets } from "../../support/presets.ts";

const requestOf = (body: string) => ({
  method: "POST",
  headers: { "content-type": "application/json" },
  target: "/",
  body: Buffer.from(body),
});

describe("the route key of a sample", () => {
  const routed = [...sharedPresets().values()].filter(({ intake }) => intake !== undefined);

  it.each(routed.map(({ preset }) => preset))("can be set for each preset that declares one: %s", (name) => {
    const preset = sharedPresets().get(name);
    if (preset?.intake === undefined) throw new Error("the preset has no intake");
    const { sample, intake } = preset;
    const { routeBy, itemsPath = preset.itemsPath } = intake;
    const request = { method: "POST", headers: sample.headers, target: "/", body: Buffer.from(sample.body) };
    const put = putRouteKey(request, { routeBy, itemsPath }, "70012");
    if (!put.ok) throw new Error(put.error);
    const rules = rulesOf([], itemsPath === undefined ? {} : { itemsPath });
    const paths = compileRoutes(rules.profile, rules.config, routeBy);
    if (!paths.ok) throw new Error(JSON.stringify(paths.error));
    const { body, headers } = put.value;
    const explained = explainRoutes(rules, paths.value, deliveryOf(body.toString(), { headers }), 10);
    if (explained.kind !== "explained") throw new Error(explained.kind);
    expect(explained.items.length).toBeGreaterThan(0);
    expect(new Set(explained.items.map(({ key }) => key))).toEqual(new Set(["70012"]));
  });

  it("replaces the first path that finds a value, in every item, and keeps the type of numbers", () => {
    const put = (body: string, key: string, itemsPath?: string) => {
      const result = putRouteKey(requestOf(body), { routeBy: ["$.a.id", "$body.b"], itemsPath }, key);
      return result.ok ? result.value.body.toString() : result.error;
    };
    expect(put('{"a":{"id":12345678901234567890},"b":"x"}', "7")).toBe('{"a":{"id":7},"b":"x"}');
    expect(put('{"a":{"id":1},"b":"x"}', "T7")).toBe('{"a":{"id":"T7"},"b":"x"}');
    expect(put('{"b":"x"}', "T7")).toBe('{"b":"T7"}');
    expect(put("{}", "T7")).toBe('{"a":{"id":"T7"}}');
    expect(put('{"l":[{"a":{"id":"x"}},{"a":{"id":"y"}}]}', "T7", "$.l")).toBe(
      '{"l":[{"a":{"id":"T7"}},{"a":{"id":"T7"}}]}',
    );
    expect(put("[", "T7")).toContain("no place for the route key");
    const broad = putRouteKey(requestOf("{}"), { routeBy: ["$..id"], itemsPath: undefined }, "T7");
    expect(broad).toMatchObject({ ok: false, error: expect.stringContaining("$..id") });
  });
});
