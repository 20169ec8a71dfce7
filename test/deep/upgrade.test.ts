import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { oldestServed, type PastProgram, releaseBefore } from "../faults/earlier-versions.ts";
import { channelOf, installApp } from "../support/channels.ts";
import { type GatewayProcess, startGatewayProcess } from "../support/gateway-process.ts";
import { until } from "../support/until.ts";

const dir = mkdtempSync(join(tmpdir(), "inlet-upgrade-"));
afterAll(() => rmSync(dir, { recursive: true, force: true, maxRetries: 5 }));

/**
 * Sends an event to a channel, again after each 503 as a sender does, because the first delivery may not wait for its schema on a busy
 * machine. Returns the number of published events, or the error.
 */
async function send(hookUrl: string, { origin }: GatewayProcess, id: number) {
  const url = new URL(new URL(hookUrl).pathname, origin);
  const body = JSON.stringify({ id });
  const headers = { "content-type": "application/json" };
  let answer: Record<string, unknown> = {};
  await until(async () => {
    const response = await fetch(url, { method: "POST", headers, body });
    answer = (await response.json()) as Record<string, unknown>;
    return response.status !== 503;
  });
  const { published, duplicates, quarantined, message } = answer;
  return message ?? { published, duplicates, quarantined };
}
const PUBLISHED = { published: 1, duplicates: 0, quarantined: 0 };
const DUPLICATE = { published: 0, duplicates: 1, quarantined: 0 };

describe.each([
  ["the previous release", releaseBefore],
  ["the oldest supported version", oldestServed],
])("a data directory that %s has written", (_, unpack) => {
  it("opens with this version and then with the earlier one again, with all data and without duplicates", async () => {
    const earlier: PastProgram = await unpack(dir);
    const dataDir = mkdtempSync(join(dir, "data-"));
    const env = { INLET_DATA_DIR: dataDir };
    const startEarlier = () => startGatewayProcess(env, { main: earlier.main });
    const events = [{ type: "made", idPath: "$.id", schema: { properties: { id: { maximum: 100 } } } }];
    let appId: string;
    let hookUrl: string;
    let subscriptionId: string;
    const idsOf = async (gateway: GatewayProcess) =>
      (await gateway.api<{ data: { id: number } }[]>("GET", `/apps/${appId}/events?limit=100`))
        .map(({ data }) => data.id)
        .sort();
    {
      await using gateway = await startEarlier();
      const app = await installApp(gateway, [{ uid: "in", kind: "webhook", events }]);
      appId = app.id;
      hookUrl = channelOf(app).url ?? "";
      const subscribed = await gateway.api<{ id: string }>("POST", `/apps/${appId}/events/subscribe`, {
        eventUid: "in:*",
        startAt: "earliest",
      });
      subscriptionId = subscribed.id;
      for (const id of [1, 2]) expect(await send(hookUrl, gateway, id)).toEqual(PUBLISHED);
      expect(await send(hookUrl, gateway, 1_000)).toMatchObject({ quarantined: 1 });
    }
    {
      await using gateway = await startGatewayProcess(env);
      expect(await idsOf(gateway)).toEqual([1, 2]);
      expect(await send(hookUrl, gateway, 2)).toEqual(DUPLICATE);
      expect(await send(hookUrl, gateway, 3)).toEqual(PUBLISHED);
      expect(await gateway.api("GET", `/apps/${appId}/quarantine`)).toHaveLength(1);
      expect(await gateway.api("GET", `/apps/${appId}/subscriptions/${subscriptionId}`)).toMatchObject({
        lag: 3,
      });
      expect(gateway.output()).not.toContain("redis.data_lost");
    }
    {
      await using gateway = await startEarlier();
      expect(await send(hookUrl, gateway, 3)).toEqual(DUPLICATE);
      expect(await send(hookUrl, gateway, 4)).toEqual(PUBLISHED);
    }
    await using gateway = await startGatewayProcess(env);
    expect(await idsOf(gateway)).toEqual([1, 2, 3, 4]);
    expect(await gateway.api("GET", `/apps/${appId}/quarantine`)).toHaveLength(1);
    expect(gateway.output()).not.toContain("redis.data_lost");
  });
});
