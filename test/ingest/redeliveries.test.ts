import { createHmac } from "node:crypto";
import { expect, it } from "vitest";
import { startHookServer } from "../support/hook-server.ts";
import { opened } from "../support/opened.ts";

const server = opened(() => startHookServer());

interface Redelivery {
  readonly preset: string;
  /** The delivery with the given number. All deliveries are of the same event. */
  readonly bodyOf: (attempt: number) => object;
}

const redeliveries: readonly Redelivery[] = [
  {
    preset: "google-pubsub",
    bodyOf: (attempt) => ({
      message: { data: "SGVsbG8=", messageId: "2070443601311540", publishTime: "2026-01-01T00:00:00Z" },
      subscription: "projects/ours/subscriptions/mysubscription",
      deliveryAttempt: attempt,
    }),
  },
  {
    preset: "aws-sns",
    bodyOf: (attempt) => ({
      Type: "Notification",
      MessageId: "dde3ac43-a4d8-4c8b-8ff6-8e8a7ed1b3f1",
      TopicArn: "arn:aws:sns:us-west-2:123456789012:MyTopic",
      Message: "Hello",
      Timestamp: "2026-01-01T00:00:00.000Z",
      SignatureVersion: String(attempt),
      Signature: `signature ${attempt}`,
    }),
  },
];

it.each(
  redeliveries,
)("the preset $preset counts redeliveries as duplicates, although their bodies differ", async ({
  preset,
  bodyOf,
}) => {
  // These providers sign with private keys, so the channel verifies a token instead.
  const verification = { scheme: "token", name: "x-token" };
  const config = { preset, verification, secrets: [{ value: "a-secret" }] };
  const { id } = await server.open(config, [{ type: "e" }, { type: "Notification" }]);
  const outcomes = [];
  for (const attempt of [1, 2, 2]) {
    const sent = await server.send(id, {
      body: JSON.stringify(bodyOf(attempt)),
      headers: { "x-token": "a-secret" },
    });
    outcomes.push(JSON.parse(sent.text));
  }
  const counts = outcomes.map(({ published, duplicates, quarantined }) => [
    published > 0,
    duplicates > 0,
    quarantined,
  ]);
  expect(counts).toEqual([
    [true, false, 0],
    [false, true, 0],
    [false, true, 0],
  ]);
});

it("the preset mailgun counts redeliveries as duplicates, although each has another signature in its body", async () => {
  const { id } = await server.open({ preset: "mailgun", secrets: [{ value: "key" }] }, []);
  const send = async (token: string, eventId: string) => {
    const timestamp = String(Math.floor(Date.now() / 1000));
    const signature = createHmac("sha256", "key")
      .update(timestamp + token)
      .digest("hex");
    const body = {
      signature: { timestamp, token, signature },
      "event-data": { id: eventId, event: "opened" },
    };
    const { published, duplicates, quarantined } = JSON.parse(
      (await server.send(id, { body: JSON.stringify(body) })).text,
    );
    return [published, duplicates, quarantined];
  };
  expect(await send("a".repeat(50), "one")).toEqual([1, 0, 0]);
  expect(await send("b".repeat(50), "one")).toEqual([0, 1, 0]);
  expect(await send("c".repeat(50), "two")).toEqual([1, 0, 0]);
  // A captured signature cannot be used for another event.
  expect(await send("a".repeat(50), "three")).toEqual([0, 0, 1]);
});
