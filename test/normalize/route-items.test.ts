import { expect, it } from "vitest";
import { type ExplainedRoutes, explainRoutes } from "../../src/normalize/explain-routes.ts";
import { type RouteGroup, routeItems } from "../../src/normalize/route-items.ts";
import { compileRoutes } from "../../src/normalize/routes.ts";
import { deliveryOf, rulesOf } from "./support.ts";

const JSON_TYPE = { "content-type": "application/json" };

function route(
  body: string,
  {
    itemsPath,
    routeBy = ["$.team"],
    headers = JSON_TYPE,
  }: {
    readonly itemsPath?: string;
    readonly routeBy?: readonly string[];
    readonly headers?: Readonly<Record<string, string>>;
  } = {},
) {
  const rules = rulesOf([], itemsPath === undefined ? {} : { itemsPath });
  const paths = compileRoutes(rules.profile, rules.config, routeBy);
  if (!paths.ok) throw new Error(JSON.stringify(paths.error));
  const delivery = { ...deliveryOf(body, { headers }), deliveryId: "d1", boundTo: "bytes" };
  const routed = routeItems(rules, paths.value, delivery);
  if (routed.kind !== "routed") throw new Error(routed.kind);
  expectSameExplanation(explainRoutes(rules, paths.value, delivery, 1), routed);
  return routed.groups.map(({ key, delivery: part, failure }) => ({
    key,
    body: part.body.toString(),
    deliveryId: part.deliveryId,
    boundTo: part.boundTo,
    reason: failure?.reason,
    isSame: part === delivery,
  }));
}

/** The explanation of each delivery in this file must agree with its routing. */
function expectSameExplanation(
  explained: ExplainedRoutes,
  { received, groups }: { received: number; groups: readonly RouteGroup[] },
) {
  if (explained.kind !== "explained") throw new Error(explained.kind);
  expect(explained.received).toBe(received);
  const byKey = Map.groupBy(explained.items, ({ key, failure }) => key ?? failure?.reason);
  expect([...byKey].map(([name, items]) => [name, items.length])).toEqual(
    groups.map(({ key, failure, items }) => [key ?? failure?.reason, items]),
  );
}

it("passes a delivery unchanged if all items have one key", () => {
  const [group, ...others] = route('{"team": "A"}');
  expect(others).toEqual([]);
  expect(group).toMatchObject({ key: "A", isSame: true, deliveryId: "d1", boundTo: "bytes" });
});

it("uses the first path that yields a string, number or boolean, and keeps the spelling of numbers", () => {
  const routeBy = ["$.a[0].id", "$.b", "$headers['x-team']"];
  const keyOf = (body: string) => route(body, { routeBy, headers: { ...JSON_TYPE, "x-team": "H" } })[0]?.key;
  expect(keyOf('{"a":[{"id":"first"}],"b":"second"}')).toBe("first");
  expect(keyOf('{"a":[],"b":12345678901234567890}')).toBe("12345678901234567890");
  expect(keyOf('{"a":[{"id":null}],"b":true}')).toBe("true");
  expect(keyOf('{"b":{"no":1}}')).toBe("H");
  expect(keyOf('{"b":""}')).toBe("H");
  expect(keyOf('{"b":"nul\\u0000"}')).toBe("H");
  expect(keyOf(`{"b":"${"x".repeat(513)}"}`)).toBe("H");
});

it("cuts the items of each key out of the body, with all other text unchanged", () => {
  const body = '{ "n" : 1.0, "list": [ {"team":"A","x":1e2} , {"team":"B"}, {"team":"A"} ], "end":[] }';
  const groups = route(body, { itemsPath: "$.list" });
  expect(groups.map(({ key, body: text }) => [key, text])).toEqual([
    ["A", '{ "n" : 1.0, "list": [{"team":"A","x":1e2},{"team":"A"}], "end":[] }'],
    ["B", '{ "n" : 1.0, "list": [{"team":"B"}], "end":[] }'],
  ]);
  expect(new Set(groups.map(({ deliveryId }) => deliveryId)).size).toBe(2);
  expect(new Set(groups.map(({ boundTo }) => boundTo)).size).toBe(2);
  expect(groups).toEqual(route(body, { itemsPath: "$.list" }));
});

it("cuts the lines of each key out of JSON lines, and keeps broken lines apart", () => {
  const headers = { "content-type": "application/x-ndjson" };
  const groups = route('{"team":"A"}\n{"team":"B"}\n{broken\n{"team":"A","n":2}\n', { headers });
  expect(groups.map(({ key, reason, body }) => [key ?? reason, body])).toEqual([
    ["A", '{"team":"A"}\n{"team":"A","n":2}\n'],
    ["B", '{"team":"B"}\n'],
    ["invalid_body", "{broken\n"],
  ]);
});

it("turns the items of a form or of XML into JSON if they have several keys", () => {
  const xml = "<all><e><team>A</team></e><e><team>B</team></e></all>";
  const groups = route(xml, { itemsPath: "$.all.e", headers: { "content-type": "application/xml" } });
  expect(groups.map(({ key, body }) => [key, JSON.parse(body)])).toEqual([
    ["A", { all: { e: [{ team: "A" }] } }],
    ["B", { all: { e: [{ team: "B" }] } }],
  ]);
});

it("returns the reason for items that cannot be routed", () => {
  expect(route('{"other": 1}')).toMatchObject([{ key: undefined, reason: "no_route" }]);
  expect(route("{")).toMatchObject([{ key: undefined, reason: "invalid_body", isSame: true }]);
  const mixed = route('[{"team":"A"},{}]', { itemsPath: "$" });
  expect(mixed.map(({ key, body }) => [key, body])).toEqual([
    ["A", '[{"team":"A"}]'],
    [undefined, "[{}]"],
  ]);
});
