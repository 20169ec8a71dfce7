import { describe, expect, it } from "vitest";
import { createTestStores, startTestGateway } from "../support/gateway.ts";
import {
  expectAsAjvSays,
  expectFormsAsJson,
  expectOnTopics,
  GITHUB_EVENTS,
  GITHUB_EXAMPLES,
} from "../support/github-examples.ts";
import { opened } from "../support/opened.ts";

const stores = opened(createTestStores);
const gateway = opened(() => startTestGateway(stores.env));

describe("all of GitHub's deliveries", () => {
  it("are stored byte for byte on their topics, and published once even if each is sent twice", async () => {
    expect(GITHUB_EXAMPLES.length).toBe(329);
    await expectOnTopics({ stores, gateway }, GITHUB_EXAMPLES);
  });

  it("publish the same data from form bodies and JSON bodies", () =>
    expectFormsAsJson({ stores, gateway }, GITHUB_EXAMPLES));

  it("are published or quarantined exactly as Ajv validates GitHub's own schemas", async () => {
    expect(await expectAsAjvSays(gateway, GITHUB_EVENTS)).toEqual({ sent: 329, valid: 276 });
  });
});
