import { afterAll, expect, it } from "vitest";
import { createItemRouter, createThreadShares } from "../../../src/ingest/normalizer.ts";
import { startNormalizeQueue } from "../../../src/ingest/worker/normalize-queue.ts";
import { routeItems } from "../../../src/normalize/route-items.ts";
import { compileRoutes } from "../../../src/normalize/routes.ts";
import { deliveryOf, rulesOf } from "../../normalize/support.ts";

const queue = startNormalizeQueue({
  program: new URL("../../../src/gateway/normalize-thread.ts", import.meta.url),
  validatorFor: () => {
    throw new Error("an intake has no schemas");
  },
  newEventId: () => "fresh",
});
afterAll(() => queue[Symbol.asyncDispose]());

const MAX_WAIT_MS = 60_000;
const CASES = 150;

/** State of a linear congruential generator (Numerical Recipes). The fixed seed makes each run use the same texts. */
let state = 20_260_103;
function randomBelow(limit: number): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return Math.floor((state / 2 ** 32) * limit);
}
const pick = <T>(from: readonly [T, ...T[]]): T => from[randomBelow(from.length)] ?? from[0];

const randomItem = (): string => {
  const team = pick([
    '"A"',
    '"B"',
    '"é\\u0001"',
    "12345678901234567890",
    "true",
    "null",
    "{}",
    '"__proto__"',
  ]);
  return `{"team": ${team}, "text": "${pick(["", "x", "\u{1F600}", "\\ud800"]).repeat(randomBelow(40))}", "n": 1.0}`;
};
const randomItems = (): string[] => Array.from({ length: randomBelow(12) }, randomItem);

const FORMATS = {
  "application/json": () => `{ "list" : [${randomItems().join(" , ")}] , "end": 1e2}${pick(["", "", "}"])}`,
  "application/x-ndjson": () => [...randomItems(), pick(["", "{broken", '{"team":"A"}'])].join("\n"),
  "application/xml": () =>
    `<all>${randomItems()
      .map((_, n) => `<list><team>${pick(["A", "B", ""])}</team><n>${n}</n></list>`)
      .join("")}</all>`,
  "application/x-www-form-urlencoded": () => `team=${pick(["A", "B"])}&list=1`,
};

it("returns the same groups as the main thread for random deliveries", async () => {
  for (let n = 0; n < CASES; n++) {
    const type = pick(Object.keys(FORMATS) as [keyof typeof FORMATS, ...(keyof typeof FORMATS)[]]);
    const itemsPath = { "application/json": "$.list", "application/xml": "$.all.list" }[String(type)];
    const rules = rulesOf([], itemsPath === undefined ? {} : { itemsPath });
    const routeBy = pick([["$.team"], ["$.none", "$.team"], ["$.team", "$headers['x-team']"], ["$..team"]]);
    const paths = compileRoutes(rules.profile, rules.config, routeBy);
    if (!paths.ok) throw new Error(JSON.stringify(paths.error));
    const headers = { "content-type": type, ...(randomBelow(2) === 1 && { "x-team": "of a header" }) };
    const delivery = {
      ...deliveryOf(FORMATS[type](), { headers }),
      deliveryId: pick([undefined, "d1"]),
      boundTo: pick([undefined, "bytes"]),
    };
    const here = routeItems(rules, paths.value, delivery);
    const there = await queue.route(rules, paths.value, delivery, MAX_WAIT_MS);
    expect(there, `${type} ${routeBy} ${delivery.body}`).toStrictEqual(here);
  }
});

it("is used for a large delivery, and for an organization that has used up its share of the main thread", async () => {
  let sentCount = 0;
  let cpuMs = 0;
  const shares = createThreadShares({ nowMs: () => 0, cpuMs: () => cpuMs });
  const route = createItemRouter((...args) => {
    sentCount++;
    return queue.route(...args);
  }, shares);
  const rules = rulesOf([], { itemsPath: "$.list" });
  const paths = compileRoutes(rules.profile, rules.config, ["$.team"]);
  if (!paths.ok) throw new Error(JSON.stringify(paths.error));
  const list = (items: number) =>
    deliveryOf({ list: Array(items).fill({ team: "A", text: "x".repeat(200) }) });
  const send = async (items: number) => {
    const before = sentCount;
    const routed = await route(rules, paths.value, list(items), MAX_WAIT_MS);
    expect(routed).toMatchObject({ kind: "routed", received: items });
    return sentCount > before ? "worker" : "main";
  };
  expect(await send(5)).toBe("main");
  expect(await send(100)).toBe("main");
  expect(await send(1_000)).toBe("worker");
  shares.run(rules.channel.organizationId, () => {
    cpuMs += 1_000;
  });
  expect(await send(100)).toBe("worker");
  expect(await send(5)).toBe("main");
});
