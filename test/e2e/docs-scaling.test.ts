import { readFileSync } from "node:fs";
import { ScaledObject } from "@kubernetes-models/keda/keda.sh/v1alpha1/ScaledObject";
import { TriggerAuthentication } from "@kubernetes-models/keda/keda.sh/v1alpha1/TriggerAuthentication";
import { Secret } from "kubernetes-models/v1/Secret";
import { describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { opened } from "../support/opened.ts";
import { startTestSpine } from "../support/spine.ts";

const PAGE = readFileSync(new URL("../../src/docs/scaling.md", import.meta.url), "utf8");
const blocks = (language: string): readonly string[] =>
  [...PAGE.matchAll(/^```(\w+)\n([\s\S]*?)^```/gm)].flatMap(([, name, text = ""]) =>
    name === language ? [text] : [],
  );
const [secret, authentication, scaled] = parseAllDocuments(blocks("yaml")[0] ?? "").map((one) => one.toJS());

const spine = opened(startTestSpine);

describe("the documented KEDA configuration that scales readers by lag", () => {
  it("is valid under the schemas of Kubernetes and KEDA, and its objects refer to each other by the right names", () => {
    new Secret(secret).validate();
    new TriggerAuthentication(authentication).validate();
    new ScaledObject(scaled).validate();
    expect(() =>
      new ScaledObject({ ...scaled, spec: { triggers: scaled.spec.triggers } }).validate(),
    ).toThrow();
    const [trigger] = scaled.spec.triggers;
    expect(trigger.authenticationRef.name).toBe(authentication.metadata.name);
    expect(authentication.spec.secretTargetRef).toEqual([
      { parameter: "token", name: secret.metadata.name, key: Object.keys(secret.stringData)[0] },
    ]);
  });

  it("reads the lag as a number, with an API key that may only read apps", async () => {
    const [shown = "", key = ""] = blocks("json");
    const { call } = spine.api;
    const app = await spine.install({ uid: "main", kind: "webhook", events: [{ type: "e" }] });
    const { id } = await call.post(`/apps/${app.id}/events/subscribe`, { eventUid: "*" });
    const scaler = spine.api.as((await call.post("/iam/api-keys", JSON.parse(key))).key);
    const { url, valueLocation, targetValue } = scaled.spec.triggers[0].metadata;
    const path = new URL(url).pathname
      .replace(/^\/v1/, "")
      .replace(/app_[^/]+/, app.id)
      .replace(/sub_[^/]+/, id);
    const readLag = async () => {
      const answer = await scaler.get(path);
      expect(Object.keys(answer)).toEqual(Object.keys(JSON.parse(shown)));
      return answer[valueLocation];
    };
    expect(Number(targetValue)).toBeGreaterThan(0);
    expect(await readLag()).toBe(0);
    for (let n = 0; n < 3; n++) await spine.send(app.channels[0].id, { n });
    expect(await readLag()).toBe(3);
    expect((await scaler("POST", `/apps/${app.id}/events/subscribe`, { eventUid: "*" })).status).toBe(403);
    expect((await spine.api.as(await spine.api.keyWith("problems.read"))("GET", path)).status).toBe(403);
  });
});
