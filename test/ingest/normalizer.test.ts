import { expect, it } from "vitest";
import {
  createExplainer,
  createNormalizer,
  createThreadShares,
  type Explainer,
  type Normalizer,
} from "../../src/ingest/normalizer.ts";
import type { NormalizeDeps } from "../../src/normalize/normalize.ts";
import { deliveryOf, rulesOf } from "../normalize/support.ts";

/**
 * Creates a normalizer with simulated CPU time. Checking a delivery of a `slow` channel takes 10 ms. One of a `collected` channel takes 3
 * ms,
 * as a garbage collection does.
 */
function open() {
  let now = 1_000_000;
  let cpu = 0;
  const deps: NormalizeDeps = {
    validatorFor: (schema) => ({
      validate() {
        if (typeof schema === "object") cpu += { slow: 10, collected: 3 }[String(schema.title)] ?? 0;
        return undefined;
      },
    }),
    newEventId: () => "fresh",
  };
  const gone: string[] = [];
  const elsewhere: Normalizer = ({ channel }) => {
    gone.push(channel.organizationId);
    return { kind: "tooManyItems", limit: 0 };
  };
  const explainElsewhere: Explainer = async ({ channel }) => {
    gone.push(channel.organizationId);
    return { kind: "tooManyItems", limit: 0 };
  };
  const shares = createThreadShares({ nowMs: () => now, cpuMs: () => cpu });
  const ways = {
    normalize: createNormalizer(deps, elsewhere, shares),
    explain: createExplainer(deps, explainElsewhere, shares),
  };
  return {
    pass(ms: number) {
      now += ms;
    },
    /** Returns how many deliveries go to the worker thread. */
    send(
      organizationId: string,
      title: string,
      bytes: number,
      count: number,
      way: keyof typeof ways = "normalize",
    ): number {
      const rules = rulesOf([{ type: "all", schema: { title } }]);
      const own = { ...rules, channel: { ...rules.channel, organizationId } };
      gone.length = 0;
      for (let n = 0; n < count; n++) void ways[way](own, deliveryOf({ text: "x".repeat(bytes) }));
      return gone.length;
    },
  };
}

it("deliveries are parsed on the worker thread only if their organization has used up its share of main thread CPU time", () => {
  const { pass, send } = open();
  expect(send("org_big", "slow", 5_000, 30)).toBe(20);
  expect(send("org_small", "quick", 5_000, 30)).toBe(0);
  // All deliveries of this organization that are large enough to send, whatever they cost.
  expect(send("org_big", "quick", 5_000, 5)).toBe(5);
  expect(send("org_big", "slow", 100, 5)).toBe(0);
  pass(500);
  expect(send("org_big", "slow", 5_000, 10)).toBe(5);
  pass(10_000);
  expect(send("org_big", "slow", 5_000, 10)).toBe(0);
});

it("deliveries that need little CPU time are parsed on the main thread, even 1,000 in a row", () => {
  expect(open().send("org_big", "quick", 100_000, 1_000)).toBe(0);
  expect(open().send("org_big", "collected", 100_000, 1_000)).toBe(0);
});

it("explaining deliveries counts against the same share of main thread CPU time as parsing deliveries", () => {
  const { pass, send } = open();
  expect(send("org_big", "slow", 5_000, 10, "explain")).toBe(0);
  expect(send("org_big", "quick", 5_000, 3, "normalize")).toBe(3);
  expect(send("org_big", "slow", 5_000, 5, "explain")).toBe(5);
  expect(send("org_small", "slow", 5_000, 5, "explain")).toBe(0);
  expect(send("org_big", "slow", 100, 5, "explain")).toBe(0);
  pass(1_000);
  expect(send("org_big", "slow", 5_000, 15, "explain")).toBe(5);
});
