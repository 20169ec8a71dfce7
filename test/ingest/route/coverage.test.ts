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
  expect(toIntake).toContain("routeItems");
});
