import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { OTHER_GROUPS } from "../../../src/resources/kit/missing-path.ts";
import { createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

const api = opened(createTestApi);

it.each<[path: string, message: string]>([
  ...Object.keys(OTHER_GROUPS).map((group) => [`/${group}`, `\`${group}\`. It belongs`] as [string, string]),
  ["/flows/flow_1/run", "`flows`. It belongs"],
  ["/data-sources", "`datasources`. It belongs"],
  ["/artifacts", "`/stores/artifacts`"],
  ["/artifacts/art_1", "`/stores/artifacts`"],
  ["/api-keys", "`/iam/api-keys`"],
  ["/roles", "`/iam/roles`"],
  ["/channels", "`/apps/{appId}/channels`"],
  ["/subscriptions", "`/apps/{appId}/subscriptions`"],
  ["/topics", "`/apps/{appId}/topics`"],
  ["/phone-numbers", "`/telephony/phone-numbers`"],
  ["/blueprint", "did you mean blueprints?"],
  ["/taks", "did you mean tasks?"],
  ["/nothing-like-it", "`GET /openapi.json`"],
])("the 404 of %s says where the resource is", async (path, message) => {
  for (const method of ["GET", "POST", "DELETE"]) {
    const { status, body } = await api.call(method, path);
    expect([status, body.code]).toEqual([404, "not_found"]);
    expect(body.message).toContain(message);
  }
});

it("an existing path with another method still gets a 405, and a missing entity its own 404", async () => {
  expect((await api.call("PATCH", "/apps")).status).toBe(405);
  expect((await api.call("GET", "/apps/app_x")).body.message).toBe("There is no such app.");
  expect((await api.call("GET", "/tasks/a/b/c")).body.message).toBe("There is no such resource.");
});

it("the API page lists each group of the platform that Inlet does not have", () => {
  const page = readFileSync("src/docs/api.md", "utf8").toLowerCase();
  for (const group of Object.keys(OTHER_GROUPS)) expect(page).toContain(`| ${group} |`);
});
