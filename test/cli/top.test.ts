import { expect, it } from "vitest";
import { rateChannels } from "../../src/cli/commands/events/top.ts";
import { runInlet } from "../support/command.ts";
import { API_KEY } from "../support/gateway-process.ts";
import { givenGateway } from "../support/given-gateway.ts";

const gateway = givenGateway();
const env = () => ({ INLET_URL: gateway.origin, INLET_API_KEY: API_KEY });

const COUNTS = { received: 0, published: 0, duplicate: 0, quarantined: 0, rejected: 0, handlerFailed: 0 };
const snapshot = (atMs: number, counts: Readonly<Record<string, number>>) => ({
  atMs,
  isCut: false,
  channels: new Map(
    Object.entries(counts).map(([channel, received]) => [
      channel,
      { appId: "app_1", channel, ...COUNTS, received },
    ]),
  ),
});

it("computes rates from differences of counts, the busiest channel first", () => {
  const rates = rateChannels(
    snapshot(70_000, { a: 105, b: 50, c: 3 }),
    snapshot(60_000, { a: 100, b: 20, c: 4 }),
  );
  expect(rates.map(({ channel, received }) => [channel, received])).toEqual([
    ["b", 3],
    ["a", 0.5],
    ["c", 0],
  ]);
});

it("leaves out a channel whose earlier counts are unknown, because only the busiest channels were read", () => {
  const before = { ...snapshot(60_000, { a: 100 }), isCut: true };
  const rates = rateChannels(snapshot(70_000, { a: 105, b: 500 }), before);
  expect(rates.map(({ channel, received }) => [channel, received])).toEqual([["a", 0.5]]);
});

it("inlet top ends after the given number of updates", async () => {
  expect(await runInlet(["top", "--count", "1", "--json"], { env: env() })).toMatchObject({
    code: 0,
    stderr: "",
  });
  const shown = await runInlet(["top", "--count", "1"], { env: env(), columns: 80 });
  expect(shown.stdout).toContain("0 received per second, over 60 seconds");
  expect(shown.stderr).toContain("No channel received a delivery.");
});

it("inlet top rejects an interval below the 10 seconds between two writes of the counts", async () => {
  const { code, stderr } = await runInlet(["top", "--interval", "1"], { env: env() });
  expect(code).toBe(2);
  expect(stderr).toContain("must be an integer between 10 and 3600");
});
