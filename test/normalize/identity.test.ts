import { hash } from "node:crypto";
import { expect, it } from "vitest";
import { webhook } from "../../src/channels/webhook/webhook.ts";
import type { OutgoingEvent } from "../../src/event/event.ts";
import type { VerifiedDelivery } from "../../src/event/received.ts";
import { normalize } from "../../src/normalize/normalize.ts";
import { compileRules } from "../../src/normalize/rule-set.ts";
import { channel, deliveryOf, settings } from "./support.ts";

function normalizeToEvent(delivery: VerifiedDelivery, number = channel.number): OutgoingEvent | undefined {
  const definitions = [{ type: "t", idPath: "$.id" }];
  const rules = compileRules({
    channel: { ...channel, number },
    profile: webhook.profile,
    config: settings(),
    definitions,
  });
  if (!rules.ok) throw new Error(JSON.stringify(rules.error));
  const deps = { validatorFor: () => ({ validate: () => undefined }), newEventId: () => "fresh" };
  const outcome = normalize(rules.value, delivery, deps);
  if (outcome instanceof Promise || outcome.kind !== "normalized")
    throw new Error("not normalized synchronously");
  return outcome.events[0];
}

it("the dedupe key of an event differs between two channels, even if both channels have the same uid", () => {
  const identityIn = (number: number) => normalizeToEvent(deliveryOf({ id: "x" }), number)?.identity;
  expect(identityIn(1)).toBe(identityIn(1));
  expect(identityIn(1)).not.toBe(identityIn(2));
});

it("the digest of an event is the same for a signed and an unsigned delivery", () => {
  const delivery = deliveryOf({ id: "x" });
  const bodyHash = hash("sha256", delivery.body, "base64url");
  const event = normalizeToEvent({ ...delivery, bodyHash });
  expect(event?.digest).toBe(bodyHash.slice(0, 11));
  expect(normalizeToEvent(delivery)).toEqual(event);
});
