import { afterAll, beforeAll, expect, it } from "vitest";
import { type Answer, type Call, createTestApi, type TestApi } from "../support/api.ts";

let api: TestApi;
let stranger: Call;
beforeAll(async () => {
  api = await createTestApi();
  stranger = api.as(await api.strangerKey());
});
afterAll(() => api[Symbol.asyncDispose]());

/** Differ between any two requests. */
const OWN_TO_EACH = ["x-request-id", "ratelimit-remaining", "ratelimit-reset"];

/** What of an answer could tell one case from another. */
const visible = ({ status, headers, body }: Answer) => ({
  status,
  body,
  headers: Object.fromEntries([...headers].filter(([name]) => !OWN_TO_EACH.includes(name))),
});

it("answers an id of another organization exactly as one that does not exist, and changes nothing", async () => {
  const blueprint = (
    await api.call("POST", "/blueprints", { title: "ours", channels: [{ uid: "main", kind: "webhook" }] })
  ).body;
  const app = (await api.call("POST", "/apps/install", { blueprintId: blueprint.id })).body;
  const channel = app.channels[0];
  const missing = (id: string) => `${id.slice(0, -3)}000`;
  const before = await snapshot();
  const requests: [string, string, (id: string) => string, (object | undefined)?][] = [];
  for (const method of ["GET", "PUT", "DELETE"]) {
    const body = method === "PUT" ? { title: "taken" } : undefined;
    requests.push([method, blueprint.id, (id) => `/blueprints/${id}`, body]);
    requests.push([method, app.id, (id) => `/apps/${id}`, body]);
    requests.push([method, channel.id, (id) => `/apps/${app.id}/channels/${id}`, body]);
  }
  requests.push(["GET", app.id, (id) => `/apps/${id}/channels`]);
  requests.push(["POST", app.id, (id) => `/apps/${id}/channels`, { uid: "theirs", kind: "webhook" }]);
  for (const [method, id, path, body] of requests) {
    const foreign = visible(await stranger(method, path(id), body));
    expect(foreign.status).toBe(404);
    expect(foreign).toEqual(visible(await stranger(method, path(missing(id)), body)));
  }
  const install = (blueprintId: string) => stranger("POST", "/apps/install", { blueprintId });
  expect(visible(await install(blueprint.id))).toEqual(visible(await install(missing(blueprint.id))));
  expect(await snapshot()).toEqual(before);
});

it("lists nothing of another organization, nor counts it", async () => {
  for (const path of ["/blueprints", "/apps"]) {
    const { body, headers } = await stranger("GET", path);
    expect([body, headers.get("x-total-count")]).toEqual([[], "0"]);
  }
});

async function snapshot() {
  const { db } = api.database;
  return [
    await db.selectFrom("blueprints").selectAll().orderBy("id").execute(),
    await db.selectFrom("apps").selectAll().orderBy("id").execute(),
    await db.selectFrom("channels").selectAll().orderBy("number").execute(),
    await db.selectFrom("changes").select("id").orderBy("id").execute(),
  ];
}
