import { describe, expect, it } from "vitest";
import {
  expectAsAjvSays,
  expectFormsAsJson,
  expectOnTopics,
  expectReplaysKept,
  GITHUB_EVENTS,
  GITHUB_FIRSTS,
} from "../support/github-examples.ts";
import { givenGateway } from "../support/given-gateway.ts";

const gateway = givenGateway();
const { stores } = gateway;

// Sends one delivery of each event, and every example of a few events. `test/deep/github.test.ts` sends every example of all.
describe("GitHub deliveries", () => {
  it("are published byte for byte, and only once when each is sent twice", async () => {
    expect(GITHUB_FIRSTS.length).toBe(GITHUB_EVENTS.length);
    await expectOnTopics({ stores, gateway }, GITHUB_FIRSTS);
  });

  it("publish the same data as form bodies, GitHub's default, and as JSON bodies", () =>
    expectFormsAsJson({ stores, gateway }, GITHUB_FIRSTS));

  it("are published once, even if they are replayed under other ids and event types", async () => {
    const [first] = GITHUB_FIRSTS;
    if (first === undefined) throw new Error("there are no examples");
    await expectReplaysKept(gateway, first);
  });

  it("are published if Ajv accepts them with GitHub's schemas, and quarantined otherwise", async () => {
    // Each of these events has examples that fit its schema and examples that do not.
    const some = ["ping", "push", "release", "security_advisory", "star"];
    expect(await expectAsAjvSays(gateway, some)).toEqual({ sent: 31, valid: 26 });
  });
});
