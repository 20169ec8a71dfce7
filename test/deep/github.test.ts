import { describe, expect, it } from "vitest";
import {
  expectAsAjvSays,
  expectFormsAsJson,
  expectOnTopics,
  GITHUB_EVENTS,
  GITHUB_EXAMPLES,
} from "../support/github-examples.ts";
import { givenGateway } from "../support/given-gateway.ts";

const gateway = givenGateway();
const { stores } = gateway;

describe("GitHub's 329 example deliveries", () => {
  it("are published byte for byte, and only once when each is sent twice", async () => {
    expect(GITHUB_EXAMPLES.length).toBe(329);
    await expectOnTopics({ stores, gateway }, GITHUB_EXAMPLES);
  });

  it("publish the same data as form bodies and as JSON bodies", () =>
    expectFormsAsJson({ stores, gateway }, GITHUB_EXAMPLES));

  it("are published if Ajv accepts them with GitHub's schemas, and quarantined otherwise", async () => {
    expect(await expectAsAjvSays(gateway, GITHUB_EVENTS)).toEqual({ sent: 329, valid: 276 });
  });
});
