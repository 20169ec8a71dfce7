import { expect, it } from "vitest";
import { METRICS_TOKEN } from "../support/gateway-process.ts";
import { opened } from "../support/opened.ts";
import { openExamples } from "./examples.ts";

const rig = opened(openExamples);

it("every request example of the OpenAPI document succeeds once the entities that the example names exist", async () => {
  const findings: string[] = [];
  for (const operation of rig.operations) {
    const scope = await rig.newScope();
    await rig
      .tryExample(operation, scope)
      .catch(({ message }) => findings.push(`${operation.id}: ${message}`));
  }
  expect(findings).toEqual([]);
  expect(rig.operations.length).toBeGreaterThan(200);
});

it("the example delivery of the OpenAPI document is accepted by a channel created from an example", async () => {
  const scope = await rig.newScope();
  const media = rig.document.paths["/hooks/{channelId}"].post.requestBody.content["application/json"];
  const response = await rig.deliver(await scope.idOf("channelId"), media.example);
  expect(response.headers.has("x-request-id")).toBe(true);
  expect([response.status, await response.json()]).toMatchObject([200, { received: 1, published: 1 }]);
});

it("/healthz, /readyz, /metrics and /docs respond as the OpenAPI document describes", async () => {
  for (const path of ["/healthz", "/readyz", "/metrics", "/docs"]) {
    const { responses } = rig.document.paths[path].get;
    const authorized = { authorization: `Bearer ${METRICS_TOKEN}` };
    const response = await fetch(rig.gateway.origin + path, { headers: authorized });
    const [mediaType = ""] = (response.headers.get("content-type") ?? "").split(";");
    expect([path, response.status]).toEqual([path, 200]);
    expect(Object.keys(responses["200"].content)).toContain(mediaType);
    expect(response.headers.has("x-request-id")).toBe(true);
    const { status, headers } = await fetch(rig.gateway.origin + path, { method: "POST" });
    expect(responses).toHaveProperty(String(status));
    expect([status, headers.get("allow")]).toEqual([405, "GET, HEAD"]);
    await response.body?.cancel();
  }
});
