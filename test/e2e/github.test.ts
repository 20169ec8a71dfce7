import { describe, expect, it } from "vitest";
import { createTestStores, startTestGateway } from "../support/gateway.ts";
import {
  expectAsAjvSays,
  expectFormsAsJson,
  expectOnTopics,
  expectReplaysKept,
  GITHUB_EVENTS,
  GITHUB_FIRSTS,
} from "../support/github-examples.ts";
import { opened } from "../support/opened.ts";

const stores = opened(createTestStores);
const gateway = opened(() => startTestGateway(stores.env));

// One delivery of each event, and all of some; `test/deep/github.test.ts` sends all of all.
describe("GitHub's deliveries", () => {
  it("stand on their topics byte for byte, and are published once when all are sent twice", async () => {
    expect(GITHUB_FIRSTS.length).toBe(GITHUB_EVENTS.length);
    await expectOnTopics({ stores, gateway }, GITHUB_FIRSTS);
  });

  it("publish the same data as forms, which GitHub sends unless told otherwise, and as JSON", () =>
    expectFormsAsJson({ stores, gateway }, GITHUB_FIRSTS));

  it("are one event each, however often a captured one comes under other ids and events", async () => {
    const [first] = GITHUB_FIRSTS;
    if (first === undefined) throw new Error("there are no examples");
    await expectReplaysKept(gateway, first);
  });

  it("are published or quarantined as Ajv says of GitHub's own schemas", async () => {
    // Of each of these some examples fit and some do not.
    const some = ["ping", "push", "release", "security_advisory", "star"];
    expect(await expectAsAjvSays(gateway, some)).toEqual({ sent: 31, valid: 26 });
  });
});
