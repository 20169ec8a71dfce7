import { expect, it } from "vitest";
import { givenChannel } from "../support/channels.ts";
import { createTestStores } from "../support/gateway.ts";
import { startGatewayProcess } from "../support/gateway-process.ts";
import { opened } from "../support/opened.ts";
import { until } from "../support/until.ts";

const stores = opened(createTestStores);
const BATCH = 50;
const ROUNDS = 3;

it("a killed process loses the counts of at most one interval, and no delivery is counted twice", async () => {
  const from = new Date(Date.now() - 60_000).toISOString();
  let sent = 0;
  let lost = 0;
  await using reader = await startGatewayProcess(stores.env);
  const channel = await givenChannel(reader);
  async function readPublished(): Promise<number> {
    const to = new Date(Date.now() + 60_000).toISOString();
    const query = `metric=published&appId=${channel.appId}&from=${from}&to=${to}`;
    const { points } = await reader.api<{ points: readonly [string, number][] }>(
      "GET",
      `/metrics/series?${query}`,
    );
    return points.reduce((sum, [, count]) => sum + count, 0);
  }
  for (let round = 0; round < ROUNDS; round++) {
    await using victim = await startGatewayProcess(stores.env);
    const send = async (): Promise<void> => {
      const response = await fetch(`${victim.origin}${channel.hookPath}`, {
        method: "POST",
        body: `{"n":${sent}}`,
      });
      expect(response.status).toBe(200);
      sent++;
    };
    for (let n = 0; n < BATCH; n++) await send();
    // Counts that are visible are never lost again.
    await until(async () => (await readPublished()) === sent - lost);
    for (let n = 0; n < BATCH / 2; n++) await send();
    victim.kill("SIGKILL");
    await victim.exited;
    const stored = await readPublished();
    expect(stored).toBeGreaterThanOrEqual(sent - lost - BATCH / 2);
    expect(stored).toBeLessThanOrEqual(sent - lost);
    lost = sent - stored;
  }
});
