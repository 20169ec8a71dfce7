import { expect, it } from "vitest";
import { startAirtable } from "../support/providers/airtable.ts";
import { startAsana } from "../support/providers/asana.ts";
import type { Emulator } from "../support/providers/emulator.ts";
import { startGmail } from "../support/providers/gmail.ts";
import { startJira } from "../support/providers/jira.ts";
import { startMicrosoftGraph } from "../support/providers/microsoft-graph.ts";
import { startReceiver } from "../support/providers/receiver.ts";
import { startStripe } from "../support/providers/stripe.ts";
import { startTwitch } from "../support/providers/twitch.ts";
import { startZoom } from "../support/providers/zoom.ts";
import { until } from "../support/until.ts";
import { OUR_SECRET, STARTED_AT_MS } from "./provider-emulator.suite.ts";

const clock = (): number => STARTED_AT_MS;

async function post({ url, token }: Emulator, path: string, json: object): Promise<Response> {
  return fetch(url + path, {
    method: "POST",
    headers: {
      authorization: `Bearer ${token}`,
      "client-id": "ours",
      "content-type": "application/json",
    },
    body: JSON.stringify(json),
  });
}

async function get({ url, token }: Emulator, path: string): Promise<string> {
  return (await fetch(url + path, { headers: { authorization: `Bearer ${token}` } })).text();
}

const twitchSubscription = (callback: string): object => ({
  type: "channel.follow",
  version: "2",
  condition: { broadcaster_user_id: "1337", moderator_user_id: "1337" },
  transport: { method: "webhook", callback, secret: OUR_SECRET },
});

const subscription = (notificationUrl: string): object => ({
  changeType: "created",
  notificationUrl,
  lifecycleNotificationUrl: notificationUrl,
  resource: "me/messages",
  expirationDateTime: new Date(STARTED_AT_MS + 3_600_000).toISOString(),
  clientState: OUR_SECRET,
});

it("Microsoft Graph creates no subscription if the address does not repeat the validation token", async () => {
  await using emulator = await startMicrosoftGraph({ clock });
  await using receiver = await startReceiver({ preset: "github", clock });
  const response = await post(emulator, "/v1.0/subscriptions", subscription(receiver.address));
  expect(response.status).toBe(400);
  expect(await response.text()).toContain("Notification endpoint must respond with 200 OK");
  expect(emulator.hooks()).toEqual([]);
});

it("Microsoft Graph sends lifecycle notifications, and the last one when it removes a subscription", async () => {
  await using emulator = await startMicrosoftGraph({ clock });
  await using receiver = await startReceiver({ preset: "microsoft-graph", clock });
  receiver.setSecret(OUR_SECRET);
  await post(emulator, "/v1.0/subscriptions", subscription(receiver.address));
  for (const event of ["reauthorizationRequired", "missed", "subscriptionRemoved"] as const) {
    expect(await emulator.notifyLifecycle(event)).toMatchObject([{ status: 200 }]);
  }
  expect(receiver.deliveries().map(({ body }) => JSON.parse(String(body)).value[0].lifecycleEvent)).toEqual([
    "reauthorizationRequired",
    "missed",
    "subscriptionRemoved",
  ]);
  expect(emulator.hooks()).toEqual([]);
});

it("Stripe repeats its response to a request with the same idempotency key", async () => {
  await using emulator = await startStripe({ clock });
  const create = async (key: string): Promise<string> => {
    const response = await fetch(`${emulator.url}/v1/webhook_endpoints`, {
      method: "POST",
      headers: { authorization: `Bearer ${emulator.token}`, "idempotency-key": key },
      body: new URLSearchParams({ url: "https://example.com/hook", "enabled_events[]": "*" }),
    });
    return response.text();
  };
  expect(await create("a")).toBe(await create("a"));
  expect(emulator.hooks()).toHaveLength(1);
  await create("b");
  expect(emulator.hooks()).toHaveLength(2);
});

it("Twitch reports an address that fails the challenge, and then accepts the same registration again", async () => {
  await using emulator = await startTwitch({ clock });
  await using receiver = await startReceiver({ preset: "twitch", clock });
  const create = (): Promise<Response> => post(emulator, path, twitchSubscription(receiver.address));
  const path = "/helix/eventsub/subscriptions";
  expect((await create()).status).toBe(202);
  const isFailed = async (): Promise<boolean> =>
    (await get(emulator, path)).includes("webhook_callback_verification_failed");
  await until(isFailed);
  receiver.setSecret(OUR_SECRET);
  expect((await create()).status).toBe(202);
  await until(() => emulator.hooks().some(({ isPending }) => isPending !== true));
});

it("Twitch revokes a subscription with a signed message", async () => {
  await using emulator = await startTwitch({ clock });
  await using receiver = await startReceiver({ preset: "twitch", clock });
  receiver.setSecret(OUR_SECRET);
  await post(emulator, "/helix/eventsub/subscriptions", twitchSubscription(receiver.address));
  await until(() => emulator.hooks()[0]?.isPending === false);
  expect(await emulator.revoke(emulator.hooks()[0]?.id ?? "")).toBe(200);
  expect(receiver.deliveries()).toMatchObject([
    { headers: { "twitch-eventsub-message-type": "revocation" } },
  ]);
  expect(emulator.hooks()).toEqual([]);
});

it("Jira accepts a single address per app", async () => {
  await using emulator = await startJira({ clock });
  const register = (url: string): Promise<Response> =>
    post(emulator, "/rest/api/3/webhook", {
      url,
      webhooks: [{ events: ["jira:issue_created"], jqlFilter: "project = ED" }],
    });
  expect((await register("https://example.com/a")).status).toBe(200);
  const second = await register("https://example.com/b");
  expect(second.status).toBe(400);
  expect(await second.text()).toContain("Currently used URL is https://example.com/a");
});

it("Airtable lists the changes behind a notification by cursor", async () => {
  await using emulator = await startAirtable({ clock });
  const { id } = emulator.addForeign("http://127.0.0.1:9/hook");
  await emulator.deliver({ first: true });
  await emulator.deliver({ second: true });
  const page = await get(emulator, `/v0/bases/app00000000000000/webhooks/${id}/payloads?cursor=2`);
  expect(JSON.parse(page)).toEqual({
    payloads: [{ second: true }],
    cursor: 3,
    mightHaveMore: false,
    payloadFormat: "v0",
  });
});

it("Gmail watches a mailbox for one topic at a time", async () => {
  await using emulator = await startGmail({ clock });
  emulator.addForeign("http://127.0.0.1:9/hook");
  const response = await post(emulator, "/gmail/v1/users/me/watch", {
    topicName: "projects/ours/topics/gmail",
  });
  expect(response.status).toBe(400);
  expect(await response.text()).toContain("Only one user push notification client allowed");
});

it.each([
  ["Asana", startAsana, "/api/1.0/webhooks", (target: string) => ({ data: { resource: "1337", target } })],
  [
    "Zoom",
    startZoom,
    "/v2/marketplace/app/event_subscription",
    (url: string) => ({ event_webhook_url: url, events: ["meeting.started"] }),
  ],
] as const)("%s creates no webhook if the address fails the handshake", async (_, start, path, toBody) => {
  await using emulator = await start({ clock });
  await using receiver = await startReceiver({ preset: "github", clock });
  expect((await post(emulator, path, toBody(receiver.address))).status).toBe(400);
  expect(emulator.hooks()).toEqual([]);
});
