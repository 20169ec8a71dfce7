import { expect, it } from "vitest";
import { webhook } from "../../src/channels/webhook/webhook.ts";
import { compileRules } from "../../src/normalize/compile.ts";
import { normalize } from "../../src/normalize/normalize.ts";
import { channel, deliveryOf, settings } from "./support.ts";

it("a new channel under an old uid does not share the old one's dedupe memory", () => {
  const identityUnder = (number: number): string | undefined => {
    const definitions = [{ type: "t", idPath: "$.id" }];
    const rules = compileRules({
      channel: { ...channel, number },
      profile: webhook.profile,
      config: settings(),
      definitions,
    });
    if (!rules.ok) throw new Error(JSON.stringify(rules.error));
    const deps = { validatorFor: () => ({ validate: () => undefined }), newEventId: () => "fresh" };
    const outcome = normalize(rules.value, deliveryOf({ id: "x" }), deps);
    if (outcome instanceof Promise || outcome.kind !== "normalized")
      throw new Error("not normalized at once");
    return outcome.events[0]?.identity;
  };
  expect(identityUnder(1)).toBe(identityUnder(1));
  expect(identityUnder(1)).not.toBe(identityUnder(2));
});
