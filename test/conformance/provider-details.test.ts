import { expect, it } from "vitest";
import type { Emulator } from "../support/providers/emulator.ts";
import { startMicrosoftGraph } from "../support/providers/microsoft-graph.ts";
import { startReceiver } from "../support/providers/receiver.ts";
import { startStripe } from "../support/providers/stripe.ts";
import { OUR_SECRET, STARTED_AT_MS } from "./provider-emulator.suite.ts";

const clock = (): number => STARTED_AT_MS;

async function post({ url, token }: Emulator, path: string, json: object): Promise<Response> {
  return fetch(url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify(json),
  });
}

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
