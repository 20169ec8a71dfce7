import { describe, expect, it } from "vitest";
import { createHookLimits } from "../../src/ingest/hook-limits.ts";
import { createClientAddressOf } from "../../src/lib/addresses/client-address.ts";
import { createTestExchange, createTestReceive, pushChannel } from "./receive-support.ts";

const SENDER = { address: "192.0.2.1", network: "192.0.2.1" };

function open({ perChannel = 100, perOrganization = 10 } = {}) {
  let nowMs = 0;
  const limits = createHookLimits({
    clientAddressOf: createClientAddressOf([]),
    requestsPerSecond: perChannel,
    limitsOf: () => ({ hookRequestsPerSecond: perOrganization }),
    isOverLimit: (organizationId) => organizationId === "org_full",
    nowMs: () => nowMs,
  });
  return { limits, wait: (ms: number) => (nowMs += ms) };
}

describe("the rate limit of an organization", () => {
  it("counts each item of a delivery, and rejects deliveries with 429 until the rate is within the limit again", () => {
    const { limits, wait } = open();
    const channel = pushChannel();
    expect(limits.checkVerified(channel)).toBeUndefined();
    limits.countItems(channel, 20);
    expect(limits.checkVerified(channel)).toMatchObject({
      code: "rate_limited",
      headers: { "Retry-After": "2" },
    });
    wait(3_000);
    expect(limits.checkVerified(channel)).toBeUndefined();
  });

  it("is not used up by unverified deliveries", () => {
    const { limits } = open();
    const channel = pushChannel();
    for (let i = 0; i < 50; i++) expect(limits.checkArrival(channel, SENDER)).toBeUndefined();
    expect(limits.checkVerified(channel)).toBeUndefined();
  });
});

it("a verified delivery is rejected if its organization has reached its storage limit", () => {
  const { limits } = open();
  expect(limits.checkArrival(pushChannel({}, "org_full"), SENDER)).toBeUndefined();
  expect(limits.checkVerified(pushChannel({}, "org_full"))).toMatchObject({ code: "rate_limited" });
});

it("the items of a delivery are counted against the rate limit after the delivery is parsed and before it is written", async () => {
  const { limits } = open();
  const steps: string[] = [];
  const receive = createTestReceive(
    async (_channel, _delivery, onItems) => {
      steps.push("parsed");
      onItems();
      await new Promise(setImmediate);
      steps.push("written");
      return { kind: "tooManyItems", limit: 1 };
    },
    { limits: { ...limits, countItems: (_, items) => void steps.push(`${items} counted`) } },
  );
  const exchange = createTestExchange({});
  receive("ch_1", exchange);
  expect((await exchange.replied).status).toBe(413);
  expect(steps).toEqual(["parsed", "1 counted", "written"]);
});
