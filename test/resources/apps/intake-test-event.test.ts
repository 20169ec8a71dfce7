import { expect, it } from "vitest";
import { opened } from "../../support/opened.ts";
import { startTestSpine } from "../../support/spine.ts";

const spine = opened(startTestSpine);

async function givenIntake(config: object, settings: object) {
  const { call } = spine.api;
  const events = [{ type: "known", typePath: null, idPath: "$.event_id" }];
  const channels = [{ uid: "main", kind: "webhook", config, events }];
  const { id } = await call.post("/blueprints", { title: "Intake", channels });
  await call.put(`/blueprints/${id}/intake`, { channel: "main", ...settings });
  const path = `/blueprints/${id}`;
  const setKeys = (appId: string, keys: readonly string[]) =>
    call.put(`${path}/installs/${appId}/route-keys`, { keys });
  const test = (body: object) => call.post(`${path}/intake/test`, body);
  return { id, path, setKeys, test };
}

it("a test event of an intake is signed and verified, goes to the install with the given key, and is marked as a test", async () => {
  const { call } = spine.api;
  const secrets = [{ value: "8f742231b10e8888abcd99yyyzzz85a5" }];
  const routeBy = ["$.authorizations[0].team_id", "$.team_id"];
  const { id, path, setKeys, test } = await givenIntake(
    { preset: "slack" },
    { routeBy, config: { secrets } },
  );
  const app = await call.post("/apps/install", { blueprintId: id });
  await setKeys(app.id, ["T1"]);
  const tested = await test({ routeKey: "T1" });
  expect(tested).toEqual({
    verification: { result: "verified", message: null },
    received: 1,
    groups: [
      { routeKey: "T1", items: 1, result: "routed", detail: null, appId: app.id, published: 1, failed: 0 },
    ],
  });
  const [event] = await call.get(`/apps/${app.id}/events`);
  expect(event).toMatchObject({ type: "known", inlettest: "true" });
  const failing = await test({ routeKey: "T1", body: '{"team_id":"T0"}' });
  expect(failing.groups).toMatchObject([{ routeKey: "T1", published: 0, failed: 1 }]);
  expect(await test({ routeKey: "T2" })).toMatchObject({
    groups: [{ routeKey: "T2", result: "no_install", appId: null, published: null }],
  });
  expect(await test({ body: "{}" })).toMatchObject({ groups: [{ routeKey: null, result: "no_route" }] });
  expect(await call.get(`${path}/quarantine`)).toEqual([]);
  expect(await call.get(`/apps/${app.id}/quarantine`)).toEqual([]);
  const reject = (body: object) => call.expectRejection("POST", `${path}/intake/test`, body);
  expect(await reject({ routeKey: "T1", body: "[" })).toMatchObject({ status: 400, paths: ["routeKey"] });
  await call.post(`${path}/intake/pause`);
  expect(await reject({ routeKey: "T1" })).toMatchObject({ status: 409 });
});

it("a test event of an intake is not published to another organization, and skips a verification that only the provider can pass", async () => {
  const { call } = spine.api;
  const verification = {
    scheme: "asymmetric",
    algorithm: "ed25519",
    name: "x-signature",
    encoding: "hex",
    keys: { from: "secrets" },
  };
  const secrets = [{ value: "a".repeat(64) }];
  const config = { verification, secrets };
  const { id, setKeys, test } = await givenIntake({}, { routeBy: ["$.team"], config });
  const store = await call.post("/stores", { name: "Store", isPublic: true });
  const artifact = await call.post("/stores/artifacts", {
    kind: "blueprint",
    title: "Intake",
    blueprintId: id,
    storeId: store.id,
  });
  const foreign = spine.api.as(await spine.api.createForeignKey());
  const app = await foreign.post("/apps/install", { artifactId: artifact.id });
  await setKeys(app.id, ["A"]);
  expect(await test({ body: '{"team":"A","event_id":"1"}' })).toMatchObject({
    verification: { result: "skipped", message: expect.stringContaining("private key") },
    groups: [
      {
        routeKey: "A",
        result: "routed",
        appId: app.id,
        published: null,
        failed: null,
        detail: expect.stringContaining("another organization"),
      },
    ],
  });
  expect(await foreign.get(`/apps/${app.id}/events`)).toEqual([]);
});
