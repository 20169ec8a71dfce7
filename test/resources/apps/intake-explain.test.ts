import { createHmac } from "node:crypto";
import { expect, it } from "vitest";
import { opened } from "../../support/opened.ts";
import { startTestSpine } from "../../support/spine.ts";

const spine = opened(startTestSpine);
const SECRET = "the secret of the intake";

async function givenIntake(settings: object, verification: object = {}) {
  const { call } = spine.api;
  const config = { itemsPath: "$.events" };
  const channels = [{ uid: "main", kind: "webhook", config, events: [{ type: "e", idPath: "$.id" }] }];
  const { id } = await call.post("/blueprints", { title: "Intake", channels });
  const scheme = { scheme: "hmac", name: "x-signature", encoding: "hex", ...verification };
  const { url } = await call.put(`/blueprints/${id}/intake`, {
    channel: "main",
    config: { ...config, verification: scheme, secrets: [{ value: SECRET }] },
    ...settings,
  });
  const app = await call.post("/apps/install", { blueprintId: id });
  await call.put(`/blueprints/${id}/installs/${app.id}/route-keys`, { keys: ["A"] });
  const sign = (body: string) => ({
    "content-type": "application/json",
    "x-signature": createHmac("sha256", SECRET).update(body).digest("hex"),
  });
  const path = `/blueprints/${id}`;
  return {
    path,
    appId: app.id,
    sign,
    address: url.slice(url.lastIndexOf("/") + 1),
    explain: (body: string, more: { readonly headers?: object } = {}) =>
      call.post(`${path}/intake/explain`, { body, ...more, headers: { ...sign(body), ...more.headers } }),
  };
}

it("explaining a delivery of an intake shows the key of each item, the values of all paths and the install, and writes nothing", async () => {
  const { path, appId, explain } = await givenIntake({ routeBy: ["$.group.id", "$.team"] });
  const events = [
    { id: "1", team: "A" },
    { id: "2", group: { id: 7 }, team: "A" },
    { id: "3", team: { no: 1 } },
  ];
  const body = JSON.stringify({ events });
  const explained = await explain(body);
  expect(explained).toEqual({
    verification: { result: "verified", message: null },
    isPaused: false,
    received: 3,
    items: [
      {
        item: 0,
        routeKey: "A",
        path: "$.team",
        paths: [
          { path: "$.group.id", values: [], isCut: false },
          { path: "$.team", values: ["A"], isCut: false },
        ],
        result: "routed",
        detail: null,
        appId,
      },
      expect.objectContaining({ routeKey: "7", path: "$.group.id", result: "no_install", appId: null }),
      {
        item: 2,
        routeKey: null,
        path: null,
        paths: [
          { path: "$.group.id", values: [], isCut: false },
          { path: "$.team", values: ['{"no":1}'], isCut: false },
        ],
        result: "no_route",
        detail: expect.stringContaining("no path"),
        appId: null,
      },
    ],
  });
  expect(await spine.api.call.get(`${path}/quarantine`)).toEqual([]);
  const tried = await explain(body, { routeBy: ["$.id"] } as object);
  expect(tried.items.map(({ routeKey }: { readonly routeKey: string }) => routeKey)).toEqual(["1", "2", "3"]);
  const wrong = await explain(body, { headers: { "x-signature": "00" } });
  expect(wrong).toMatchObject({ verification: { result: "refused" }, received: 0, items: [] });
  expect(await explain("{")).toMatchObject({ items: [{ item: null, result: "invalid_body", paths: [] }] });
  const rejected = await spine.api.call.expectRejection("POST", `${path}/intake/explain`, {
    routeBy: ["$["],
  });
  expect(rejected).toMatchObject({ status: 400, paths: ["routeBy[0]"] });
  const foreign = spine.api.as(await spine.api.createForeignKey());
  expect(await foreign.expectRejection("POST", `${path}/intake/explain`, {})).toMatchObject({ status: 404 });
});

it("explaining a delivery of an intake predicts a replay without remembering the signed bytes, and shows held keys and pauses", async () => {
  const settings = { routeBy: ["$headers['x-team']"], trustUnsigned: true };
  const intake = await givenIntake(settings, { bindDedupe: "signedBytes" });
  const { address, sign, explain, path } = intake;
  const body = JSON.stringify({ events: [{ id: "1" }] });
  const resultOf = async (team: string) =>
    (await explain(body, { headers: { "x-team": team } })).items[0].result;
  expect([await resultOf("B"), await resultOf("A")]).toEqual(["no_install", "routed"]);
  await spine.send(address, body, { ...sign(body), "x-team": "B" });
  expect([await resultOf("B"), await resultOf("A")]).toEqual(["no_install", "replayed"]);

  const { call } = spine.api;
  const other = await call.post("/apps/install", { blueprintId: path.slice("/blueprints/".length) });
  await call.put(`${path}/installs/${other.id}/route-keys`, { keys: ["B"] });
  const behind = await explain(body, { headers: { "x-team": "B" } });
  expect(behind.items).toMatchObject([
    { result: "no_install", appId: other.id, detail: expect.stringContaining("earlier items") },
  ]);
  await call.post(`${path}/intake/pause`);
  expect(await explain(body)).toMatchObject({ isPaused: true, items: [{ result: "replayed" }] });
});
