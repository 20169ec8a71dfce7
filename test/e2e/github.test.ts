import { createHmac } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Outcome } from "../../src/event/outcome.ts";
import {
  channelOf,
  createTestStores,
  installApp,
  startTestGateway,
  type TestGateway,
  type TestStores,
} from "../support/gateway.ts";
import {
  type Example,
  expectAsAjvSays,
  GITHUB_EVENTS,
  GITHUB_EXAMPLES,
  githubDefinition,
  sendExample,
} from "../support/github-examples.ts";

let stores: TestStores;
let gateway: TestGateway;
beforeAll(async () => {
  stores = await createTestStores();
  gateway = await startTestGateway(stores.env);
});
afterAll(async () => {
  await gateway?.[Symbol.asyncDispose]();
  await stores?.[Symbol.asyncDispose]();
});

describe("GitHub's deliveries", () => {
  it("stand on their topics byte for byte, and are published once when all are sent twice", async () => {
    const definitions = GITHUB_EVENTS.map((name) => githubDefinition(name));
    const app = await installApp(gateway, [{ uid: "hooks", kind: "webhook", events: definitions }]);
    const url = channelOf(app).url ?? "";
    expect(GITHUB_EXAMPLES.length).toBe(329);
    for (const example of GITHUB_EXAMPLES) {
      const outcome = await sendExample(url, example);
      expect(outcome.published).toBe(1);
      const [{ topic, entryId } = { topic: "", entryId: "" }] = outcome.events;
      expect(topic).toBe(app.topicOf("hooks", example.event));
      const [[, fields = []] = []] = await stores.client.xrange(topic, entryId, entryId);
      expect(fields[fields.indexOf("data") + 1]).toBe(example.text);
      expect(fields[fields.indexOf("id") + 1]).toBe(example.delivery);
    }
    const again = await Promise.all(GITHUB_EXAMPLES.map((example) => sendExample(url, example)));
    expect(again.reduce((sum, { published }) => sum + published, 0)).toBe(0);
    expect(again.reduce((sum, { duplicates }) => sum + duplicates, 0)).toBe(329);
  });

  it("publish as forms, which GitHub sends unless told otherwise, what they publish as JSON", async () => {
    const secret = "It's a Secret to Everybody";
    const config = { preset: "github", secrets: [{ value: secret }] };
    const events = GITHUB_EVENTS.map((type) => ({ type }));
    const app = await installApp(gateway, []);
    // biome-ignore lint/suspicious/noExplicitAny: an answer of the API
    const { url } = await gateway.api<any>("POST", `/apps/${app.id}/channels`, {
      ...{ uid: "forms", kind: "webhook", config, events },
    });
    const send = async (example: Example, contentType: string, body: string) => {
      const signature = createHmac("sha256", secret).update(body).digest("hex");
      const response = await fetch(url, {
        method: "POST",
        headers: {
          "content-type": contentType,
          "x-github-event": example.event,
          "x-github-delivery": example.delivery,
          "x-hub-signature-256": `sha256=${signature}`,
        },
        body,
      });
      expect(response.status).toBe(200);
      return (await response.json()) as Outcome;
    };
    let published = 0;
    for (const example of GITHUB_EXAMPLES) {
      const form = new URLSearchParams({ payload: example.text }).toString();
      const outcome = await send(example, "application/x-www-form-urlencoded", form);
      const [{ topic, entryId } = { topic: "", entryId: "" }] = outcome.events;
      expect(topic).toBe(app.topicOf("forms", example.event));
      const [[, fields = []] = []] = await stores.client.xrange(topic, entryId, entryId);
      expect(fields[fields.indexOf("data") + 1]).toBe(example.text);
      expect(fields[fields.indexOf("datacontenttype") + 1]).toBe("application/json");
      // The same delivery as JSON has the same data: a duplicate, and no conflict.
      expect(await send(example, "application/json", example.text)).toMatchObject({ duplicates: 1 });
      published += outcome.published;
    }
    expect(published).toBe(329);
  });

  it("are published or quarantined as Ajv says of GitHub's own schemas", async () => {
    // Of each of these some examples fit and some do not; the deep tests take all events.
    const some = ["ping", "push", "release", "security_advisory", "star"];
    expect(await expectAsAjvSays(gateway, some)).toEqual({ sent: 31, valid: 26 });
  });
});
