import { expect, it } from "vitest";
import { AnswerServer } from "../channels/polling/answer-server.ts";
import { type InstalledApp, installApp } from "../support/channels.ts";
import { deliver } from "../support/deliver.ts";
import { createTestStores, fieldsOn } from "../support/gateway.ts";
import { type GatewayProcess, startGatewayProcess } from "../support/gateway-process.ts";
import { opened } from "../support/opened.ts";
import { until } from "../support/until.ts";

interface ProviderEvent {
  readonly id: string;
  readonly at: string;
}

const KILLS = 3;
const EVENTS_PER_KILL = 30;

const stores = opened(createTestStores);
const server = opened(() => AnswerServer.start());

const env = () => ({ ...stores.env, INLET_ALLOW_NETWORKS: "127.0.0.0/8" });
/** A worker that is killed leaves its sources to the other one after a second. */
const start = (): Promise<GatewayProcess> => startGatewayProcess(env(), { sourcesTiming: { ttlMs: 1_000 } });

const install = (on: GatewayProcess): Promise<InstalledApp> =>
  installApp(on, [
    {
      uid: "hook",
      kind: "webhook",
      events: [{ type: "e", idPath: "$.id" }],
    },
    {
      uid: "poll",
      kind: "polling",
      config: {
        run: "always",
        request: { url: `${server.origin}/events`, query: { since: "{{cursor}}" } },
        schedule: { intervalSeconds: 5 },
        discriminator: { by: "timestamp", path: "$.at", lookBackSeconds: 2 },
        itemsPath: "$.events",
        itemId: "$.id",
        startAt: "earliest",
        reconciles: "hook",
        settleSeconds: 1,
        match: "id",
      },
    },
  ]);

it("publishes each event once although webhooks are missed, and workers are killed while they recover them", async () => {
  const events: ProviderEvent[] = [];
  server.answers = [
    (request, response) => {
      const since = new URL(request.url ?? "", server.origin).searchParams.get("since") ?? "";
      const listed = events.filter(({ at }) => at >= since);
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ events: listed }));
    },
  ];
  const workers = [await start(), await start()];
  try {
    const [first] = workers;
    if (first === undefined) throw new Error("there is no worker");
    const app = await install(first);
    const hook = app.channels.find(({ uid }) => uid === "hook");
    const topic = app.topicOf("hook", "e");
    const idsOnTopic = () => fieldsOn(stores, topic, "id");
    const late: (() => Promise<unknown>)[] = [];

    for (let kill = 0; kill < KILLS; kill++) {
      for (let n = 0; n < EVENTS_PER_KILL; n++) {
        const event = { id: `e${events.length}`, at: new Date().toISOString() };
        events.push(event);
        // The body differs from the item in each attempt, as with providers that count attempts.
        const [worker] = workers;
        const send = () =>
          deliver(`${worker?.origin}/hooks/${hook?.id}`, { ...event, attempt: n }).catch(() => undefined);
        if (n % 3 === 0) await send();
        else if (n % 3 === 1) late.push(send);
      }
      const missed = events.filter((_, n) => n % 3 === 2).length;
      await until(async () => (await idsOnTopic()).length > missed / 2, { everyMs: 20 });
      const victim = workers.shift();
      victim?.kill("SIGKILL");
      await victim?.exited;
      workers.push(await start());
    }
    await until(async () => new Set(await idsOnTopic()).size === events.length, { everyMs: 100 });
    // Webhooks that arrive after their events were recovered are duplicates.
    for (const send of late) await send();
    const ids = await idsOnTopic();
    expect(ids.toSorted()).toEqual(events.map(({ id }) => id).toSorted());
    const [last] = workers;
    const quarantine = await last?.api<readonly unknown[]>("GET", `/apps/${app.id}/quarantine`);
    expect(quarantine).toEqual([]);
    const source = await last?.api<{ reconcile: { missed: { count: number } } }>(
      "GET",
      `/apps/${app.id}/channels/poll/source`,
    );
    expect(source?.reconcile.missed.count).toBeGreaterThan(0);
  } finally {
    await Promise.all(workers.map((worker) => worker[Symbol.asyncDispose]()));
  }
});
