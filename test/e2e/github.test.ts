import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  channelOf,
  createTestStores,
  installApp,
  startTestGateway,
  type TestGateway,
  type TestStores,
} from "../support/gateway.ts";
import {
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

  it("are published or quarantined as Ajv says of GitHub's own schemas", async () => {
    // Of each of these some examples fit and some do not; the deep tests take all events.
    const some = ["ping", "push", "release", "security_advisory", "star"];
    expect(await expectAsAjvSays(gateway, some)).toEqual({ sent: 31, valid: 26 });
  });
});
