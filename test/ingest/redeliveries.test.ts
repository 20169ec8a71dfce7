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

const counted: readonly {
  readonly preset: string;
  readonly bodyOf: (event: string, attempt: number) => object;
}[] = [
  {
    preset: "hubspot",
    bodyOf: (event, attemptNumber) => [
      { eventId: 1, subscriptionType: "e", attemptNumber, objectId: 1, propertyValue: event },
      { eventId: 1, subscriptionType: "e", attemptNumber, objectId: 2, propertyValue: event },
    ],
  },
  {
    preset: "pipedrive",
    bodyOf: (event, attempt) => ({ meta: { entity: "e", attempt }, data: { title: event }, previous: {} }),
  },
  {
    preset: "docusign",
    bodyOf: (event, retryCount) => ({ event: "e", retryCount, data: { envelopeId: event } }),
  },
];

it.each(
  counted,
)("the preset $preset counts redeliveries with another retry counter as duplicates, also in large bodies", async ({
  preset,
  bodyOf,
}) => {
  const verification = { scheme: "token", name: "x-token" };
  const { id } = await server.open({ preset, verification, secrets: [{ value: "a-secret" }] });
  const send = async (event: string, attempt: number) => {
    const body = JSON.stringify(bodyOf(event, attempt));
    const sent = await server.send(id, { body, headers: { "x-token": "a-secret" } });
    const { published, duplicates, quarantined } = JSON.parse(sent.text);
    return [published > 0, duplicates > 0, quarantined];
  };
  // Bodies of more than 128 KiB are normalized in a worker thread.
  const large = "x".repeat(200_000);
  for (const event of ["one", "two", large, `${large}y`]) {
    expect(await send(event, 0)).toEqual([true, false, 0]);
    expect(await send(event, 1)).toEqual([false, true, 0]);
    expect(await send(event, 12)).toEqual([false, true, 0]);
  }
});

it("a channel that sets `dedupe.by` itself does not get the paths of its preset, and may ignore values only by content", async () => {
  const secrets = [{ value: "a:b" }];
  const own = await server.open({ preset: "pipedrive", secrets, dedupe: { by: "id" } });
  expect(own.config.dedupe).toEqual({ windowSeconds: 86_400, by: "id", onConflict: "quarantine" });
  const preset = await server.open({ preset: "pipedrive", secrets, dedupe: { windowSeconds: 60 } });
  expect(preset.config.dedupe).toEqual({
    windowSeconds: 60,
    by: "content",
    ignore: ["$.meta.attempt", "$.retry"],
    onConflict: "quarantine",
  });
  const { status, body } = await server.spine.api.call("POST", `/apps/${own.appId}/channels`, {
    uid: "refused",
    kind: "webhook",
    config: { preset: "pipedrive", secrets, dedupe: { by: "id", ignore: ["$.retry"] } },
  });
  expect(status).toBe(400);
  expect(JSON.stringify(body)).toContain('"config.dedupe.ignore"');
});

it("the preset mailgun counts redeliveries as duplicates, although each has another signature in its body", async () => {
  const { id } = await server.open({ preset: "mailgun", secrets: [{ value: "key" }] }, []);
  // The signature covers the timestamp, so a captured one is only recognized with the same timestamp.
  const timestamp = String(Math.floor(Date.now() / 1000));
  const send = async (token: string, eventId: string) => {
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
