import { expect, it } from "vitest";
import { createTestStores, startTestGateway } from "../support/gateway.ts";
import { expectAsAjvSays, GITHUB_EVENTS } from "../support/github-examples.ts";

it("all of GitHub's deliveries are published or quarantined as Ajv says of GitHub's own schemas", async () => {
  await using stores = await createTestStores();
  await using gateway = await startTestGateway(stores.env);
  expect(await expectAsAjvSays(gateway, GITHUB_EVENTS)).toEqual({ sent: 329, valid: 276 });
});
