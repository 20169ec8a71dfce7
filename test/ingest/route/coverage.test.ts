import { Session } from "node:inspector/promises";
import { expect, it } from "vitest";
import { opened } from "../../support/opened.ts";
import { startTestSpine } from "../../support/spine.ts";

const spine = opened(startTestSpine);

/** Returns the names of the routing functions that run during `work`. */
async function findRouting(work: () => Promise<unknown>): Promise<readonly string[]> {
  const session = new Session();
  session.connect();
  try {
    await session.post("Profiler.enable");
    await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
    await work();
    const { result } = await session.post("Profiler.takePreciseCoverage");
    return result
      .filter(({ url }) => /\/src\/(ingest\/route\/|normalize\/route|data\/intakes\/)/.test(url))
      .flatMap(({ functions }) => functions)
      .filter(({ functionName, ranges }) => functionName !== "" && (ranges[0]?.count ?? 0) > 0)
      .map(({ functionName }) => functionName);
  } finally {
    session.disconnect();
  }
}

it("a delivery to the channel of an app executes no code of intakes", async () => {
  const events = [{ type: "e", idPath: "$.id" }];
  const app = await spine.install({ uid: "main", kind: "webhook", config: {}, events });
  const toApp = await findRouting(() => spine.send(app.channels[0].id, { id: "1" }));
  expect(toApp).toEqual([]);
  const { id } = await spine.api.call.post("/blueprints", {
    title: "Intake",
    channels: [{ uid: "main", kind: "webhook", events }],
  });
  const verification = { scheme: "token", name: "x-token" };
  const { url } = await spine.api.call.put(`/blueprints/${id}/intake`, {
    channel: "main",
    routeBy: ["$.team"],
    config: { verification, secrets: [{ value: "the token of the intake" }] },
  });
  const address = url.slice(url.lastIndexOf("/") + 1);
  const toIntake = await findRouting(() =>
    spine.send(address, { id: "1", team: "A" }, { "x-token": "the token of the intake" }),
  );
  expect(toIntake).toEqual(expect.arrayContaining(["send", "routeItems", "findKey"]));
});

it("a body of 16 MiB with many items is split on the worker thread, and each install gets its items", async () => {
  const { call } = spine.api;
  const config = { itemsPath: "$.events", limits: { maxBodyBytes: 20 * 1024 * 1024 } };
  const channels = [{ uid: "main", kind: "webhook", config, events: [{ type: "e", idPath: "$.id" }] }];
  const { id } = await call.post("/blueprints", { title: "Intake", channels });
  const verification = { scheme: "token", name: "x-token" };
  const { url } = await call.put(`/blueprints/${id}/intake`, {
    channel: "main",
    routeBy: ["$.team"],
    config: { ...config, verification, secrets: [{ value: "the token of the intake" }] },
  });
  const teams = ["A", "B"];
  for (const team of teams) {
    const app = await call.post("/apps/install", { blueprintId: id });
    await call.put(`/blueprints/${id}/installs/${app.id}/route-keys`, { keys: [team] });
  }
  const text = "x".repeat(17_000);
  const events = Array.from({ length: 1_000 }, (_, n) => ({ id: String(n), team: teams[n % 2], text }));
  const address = url.slice(url.lastIndexOf("/") + 1);
  let outcome: unknown;
  const onMainThread = await findRouting(async () => {
    outcome = await spine.send(address, { events }, { "x-token": "the token of the intake" });
  });
  expect(outcome).toMatchObject({ received: 1_000, published: 1_000 });
  expect(onMainThread).toContain("send");
  expect(onMainThread).not.toContain("findKey");
});
