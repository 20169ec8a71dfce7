import { describe, expect, it } from "vitest";
import { installApp } from "../support/channels.ts";
import { post } from "../support/deliver.ts";
import { fieldsOn } from "../support/gateway.ts";
import { readMetrics } from "../support/gateway-process.ts";
import { givenGateway } from "../support/given-gateway.ts";
import { opened } from "../support/opened.ts";
import { PollUpstream } from "../support/poll-upstream.ts";
import { until } from "../support/until.ts";

const env = { INLET_ALLOW_NETWORKS: "127.0.0.0/8" };
const upstream = opened(() => PollUpstream.start());
const api = givenGateway({ ...env, INLET_ROLES: "api" });
const { stores } = api;
const hooks = givenGateway({ ...env, INLET_ROLES: "hooks" }, { stores });
const worker = givenGateway(
  { ...env, INLET_ROLES: "sources" },
  { stores, sourcesTiming: { wakeSpacingMs: 0 } },
);
const app = opened(() => {
  upstream.nowMs += 1_000;
  upstream.insert();
  return installApp(api, [
    { uid: "bell", kind: "webhook", config: { wakes: ["rows"] } },
    {
      uid: "rows",
      kind: "polling",
      config: {
        run: "always",
        request: { url: `${upstream.origin}/rows`, query: { since: "{{cursor}}" } },
        schedule: { intervalSeconds: 86_400 },
        discriminator: { by: "timestamp", path: "$.at" },
        itemsPath: "$.rows",
        itemId: "$.id",
        startAt: "earliest",
      },
      events: [{ type: "row" }],
    },
  ]);
});

const published = async () => (await fieldsOn(stores, app.topicOf("rows", "row"), "id")).length;
const ring = () => post(`${hooks.origin}/hooks/${app.channels[0]?.id}`, "");
const path = () => `/apps/${app.id}/channels/rows`;

describe("a webhook that only rings", () => {
  it("makes a gateway with another role poll now, although the next poll is due in a day", async () => {
    await until(async () => (await published()) === 1);
    for (let n = 2; n < 5; n++) {
      upstream.nowMs += 1_000;
      upstream.insert();
      const { status, body } = await ring();
      expect([status, body.woken]).toEqual([200, ["rows"]]);
      await until(async () => (await published()) === n);
    }
    expect(await readMetrics(hooks.origin)).toContain('inlet_wakes_total{kind="webhook",result="stored"} 3');
  });

  it("has no effect while the polling channel is paused", async () => {
    await api.api("POST", `${path()}/pause`, {});
    const countIgnored = async () => {
      const lines = (await readMetrics(worker.origin)).matchAll(/inlet_wakes_total\{.*"ignored"\} (\d+)/g);
      return [...lines].reduce((sum, [, count]) => sum + Number(count), 0);
    };
    // The pause reaches the worker within two seconds. A wake before that is still polled.
    await until(async () => {
      await ring();
      return (await countIgnored()) > 0;
    });
    const [ignored, requests] = [await countIgnored(), upstream.requests.length];
    await ring();
    await until(async () => (await countIgnored()) > ignored);
    expect(upstream.requests.length).toBe(requests);
    await api.api("POST", `${path()}/resume`, {});
  });
});
