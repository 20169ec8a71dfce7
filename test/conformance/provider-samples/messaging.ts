import { startTelegram } from "../../support/providers/telegram.ts";
import { startTwitch } from "../../support/providers/twitch.ts";
import { startWebSubHub } from "../../support/providers/websub-hub.ts";
import { startZoom } from "../../support/providers/zoom.ts";
import { type ApiRequest, OUR_SECRET, type ProviderSamples } from "../provider-emulator.suite.ts";

const DAY_MS = 86_400_000;

const hub = (mode: string, address: string): ApiRequest => ({
  on: "POST /",
  form: {
    "hub.mode": mode,
    "hub.topic": "https://example.com/feed",
    "hub.callback": address,
    "hub.secret": OUR_SECRET,
    "hub.lease_seconds": "86400",
  },
});

const twitchSubscription = (callback: string): ApiRequest => ({
  on: "POST /helix/eventsub/subscriptions",
  json: {
    type: "channel.follow",
    version: "2",
    condition: { broadcaster_user_id: "1337", moderator_user_id: "1337" },
    transport: { method: "webhook", callback, secret: OUR_SECRET },
  },
});

export const MESSAGING: readonly ProviderSamples[] = [
  {
    preset: "websub",
    start: startWebSubHub,
    create: (address) => hub("subscribe", address),
    renew: ({ address }) => hub("subscribe", address),
    remove: ({ address }) => hub("unsubscribe", address),
    invalid: [{ on: "POST /", form: { "hub.mode": "subscribe" } }, [400, "hub.topic"]],
    quota: [403, "no more subscriptions"],
    lifetimeMs: DAY_MS,
    handshakes: 1,
    idPath: "none",
    keepsRemoved: "the preset does not confirm the hub's request to unsubscribe",
  },
  {
    preset: "telegram",
    start: startTelegram,
    create: (url) => ({ on: "POST /bot{token}/setWebhook", json: { url, secret_token: OUR_SECRET } }),
    check: () => ({ on: "POST /bot{token}/getWebhookInfo" }),
    update: (_, url) => ({ on: "POST /bot{token}/setWebhook", json: { url, secret_token: OUR_SECRET } }),
    remove: () => ({ on: "POST /bot{token}/deleteWebhook" }),
    authorize: () => ({}),
    invalid: [
      {
        on: "POST /bot{token}/setWebhook",
        json: { url: "https://example.com", secret_token: "not allowed" },
      },
      [400, "secret token contains unallowed characters"],
    ],
    unauthorized: [401, "Unauthorized"],
    idPath: "$.update_id",
    isSingle: true,
  },
  {
    preset: "twitch",
    start: startTwitch,
    create: twitchSubscription,
    list: { on: "GET /helix/eventsub/subscriptions" },
    check: ({ id }) => ({ on: `GET /helix/eventsub/subscriptions?subscription_id=${id}` }),
    remove: ({ id }) => ({ on: `DELETE /helix/eventsub/subscriptions?id=${id}` }),
    authorize: (token) => ({ authorization: `Bearer ${token}`, "client-id": "ours" }),
    invalid: [{ on: "POST /helix/eventsub/subscriptions", json: {} }, [400, "missing or unparseable"]],
    unauthorized: [401, "Invalid OAuth token"],
    limited: [403, "subscription missing proper authorization"],
    exists: [409, "subscription already exists"],
    quota: [429, "cost exceeded"],
    handshakes: 1,
    idPath: "$headers['twitch-eventsub-message-id']",
  },
  {
    preset: "zoom",
    start: startZoom,
    create: (address) => ({
      on: "POST /v2/marketplace/app/event_subscription",
      json: { event_webhook_url: address, event_subscription_name: "ours", events: ["meeting.started"] },
    }),
    list: { on: "GET /v2/marketplace/app/event_subscription" },
    remove: ({ id }) => ({ on: `DELETE /v2/marketplace/app/event_subscription/${id}` }),
    invalid: [{ on: "POST /v2/marketplace/app/event_subscription", json: {} }, [400, "Validation Failed."]],
    unauthorized: [401, "Invalid access token."],
    limited: [400, "does not contain scopes"],
    gone: [404, "does not exist"],
    quota: [400, "limit of 1 event subscriptions"],
    handshakes: 1,
    idPath: "none",
  },
];
