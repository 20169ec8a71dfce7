import { expect, it } from "vitest";
import { channelKinds } from "../../src/channels/kinds.ts";
import { hasAddress } from "../../src/data/channels/address-columns.ts";
import { startConfigCheck } from "../../src/maintenance/config-check.ts";
import { createMetrics } from "../../src/metrics.ts";
import { givenChannel } from "../support/channels.ts";
import { opened } from "../support/opened.ts";
import { startTestSpine } from "../support/spine.ts";
import { createTestLog } from "../support/test-log.ts";
import { until } from "../support/until.ts";

const spine = opened(startTestSpine);

const CONFIG = {
  request: { url: "https://api.example.com/items" },
  discriminator: { by: "sequence", path: "$.id" },
};

async function install(uid: string, stored?: object) {
  const { id } = await givenChannel(spine, { uid, kind: "polling", config: CONFIG });
  const { db } = spine.api.database;
  const row = db.selectFrom("channels").select(["number", "config"]).where(hasAddress(spine.api.keyring, id));
  const { number, config } = await row.executeTakeFirstOrThrow();
  const changed = JSON.stringify({ ...config, ...stored });
  await db.updateTable("channels").set({ config: changed }).where("number", "=", number).execute();
  return number;
}

it("at startup, the gateway logs channels with outdated or invalid settings, and outdated channels continue to work", async () => {
  await install("sound");
  const headers = { "x-a": " a " };
  const outdated = await install("outdated", { request: { ...CONFIG.request, headers } });
  const unfit = await install("unfit", { request: {} });
  expect((await spine.path.findCompiledChannel(outdated))?.kindConfig).toMatchObject({
    request: { headers },
  });
  await expect(spine.path.findCompiledChannel(unfit)).rejects.toThrow("no longer valid");

  const { log, lines } = createTestLog("warn");
  const metrics = createMetrics();
  await using _ = startConfigCheck({ db: spine.api.database.db, channelKinds, metrics, log });
  await until(async () => (await metrics.registry.metrics()).includes("inlet_channels_unfit 1"));
  expect(lines).toMatchObject([
    { event: "channel.outdated", channel: outdated, details: [{ path: "request.headers.x-a" }] },
    { event: "channel.unfit", channel: unfit },
  ]);
});
