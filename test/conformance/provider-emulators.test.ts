import { startAirtable } from "../support/providers/airtable.ts";
import type { Hook } from "../support/providers/emulator.ts";
import { startGitHub } from "../support/providers/github.ts";
import { startGitLab } from "../support/providers/gitlab.ts";
import { startGoogleCalendar, startGoogleDrive } from "../support/providers/google-push.ts";
import { startJira } from "../support/providers/jira.ts";
import { startMicrosoftGraph } from "../support/providers/microsoft-graph.ts";
import { startShopify } from "../support/providers/shopify.ts";
import { startStripe } from "../support/providers/stripe.ts";
import { startTelegram } from "../support/providers/telegram.ts";
import { startTwitch } from "../support/providers/twitch.ts";
import { startWebSubHub } from "../support/providers/websub-hub.ts";
import {
  type ApiRequest,
  describeProvider,
  OUR_SECRET,
  type ProviderSamples,
  STARTED_AT_MS,
} from "./provider-emulator.suite.ts";

const DAY_MS = 86_400_000;

const hooksOf = (owner: string, kind: string): ProviderSamples => ({
  preset: "github",
  object: kind,
  start: (options) => startGitHub({ ...options, owner }),
  create: (url) => ({
    on: `POST ${owner}/hooks`,
    json: { name: "web", config: { url, content_type: "json", secret: OUR_SECRET } },
  }),
  list: { on: `GET ${owner}/hooks?per_page=100` },
  check: ({ id }) => ({ on: `GET ${owner}/hooks/${id}` }),
  update: ({ id }, url) => ({
    on: `PATCH ${owner}/hooks/${id}`,
    json: { config: { url, content_type: "json", secret: OUR_SECRET } },
  }),
  remove: ({ id }) => ({ on: `DELETE ${owner}/hooks/${id}` }),
  invalid: [
    { on: `POST ${owner}/hooks`, json: { name: "web", config: {} } },
    [422, "Config must contain URL for webhooks"],
  ],
  unauthorized: [401, "Bad credentials"],
  limited: [404, "Not Found"],
  exists: [422, `Hook already exists on this ${kind}`],
  gone: [404, "Not Found"],
  quota: [422, 'The \\"push\\" event cannot have more than 1 hooks'],
  handshakes: 1,
  idPath: "$headers['x-github-delivery']",
});

const secondsAhead = (seconds: number): string => new Date(STARTED_AT_MS + seconds * 1_000).toISOString();

const subscription = (notificationUrl: string, seconds: number): ApiRequest => ({
  on: "POST /v1.0/subscriptions",
  json: {
    changeType: "created",
    notificationUrl,
    lifecycleNotificationUrl: notificationUrl,
    resource: "me/messages",
    expirationDateTime: secondsAhead(seconds),
    clientState: OUR_SECRET,
  },
});

const google = (path: string, days: number): Omit<ProviderSamples, "preset" | "start"> => {
  const [, api = ""] = path.split("/");
  return {
    create: (address) => ({
      on: `POST ${path}`,
      json: {
        id: "our-channel",
        type: "web_hook",
        address,
        token: OUR_SECRET,
        expiration: STARTED_AT_MS + 60 * DAY_MS,
      },
    }),
    remove: ({ id, resourceId }: Hook & { resourceId?: string }) => ({
      on: `POST /${api}/v3/channels/stop`,
      json: { id, resourceId },
    }),
    invalid: [{ on: `POST ${path}`, json: { type: "web_hook" } }, [400, "required"]],
    unauthorized: [401, "authError"],
    limited: [403, "insufficientPermissions"],
    gone: [404, "Channel 'our-channel' not found"],
    quota: [403, "rateLimitExceeded"],
    exists: [400, "channelIdNotUnique"],
    lifetimeMs: days * DAY_MS,
    handshakes: 1,
    idPath: "none",
  };
};

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

const jiraWebhook = (url: string, name: string): object => ({
  name,
  url,
  events: ["jira:issue_created"],
  secret: OUR_SECRET,
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

const PROVIDERS: readonly ProviderSamples[] = [
  hooksOf("/repos/acme/shop", "repository"),
  hooksOf("/orgs/acme", "organization"),
  {
    preset: "stripe",
    start: startStripe,
    create: (url) => ({
      on: "POST /v1/webhook_endpoints",
      form: { url, "enabled_events[]": "charge.succeeded" },
    }),
    list: { on: "GET /v1/webhook_endpoints?limit=100" },
    check: ({ id }) => ({ on: `GET /v1/webhook_endpoints/${id}` }),
    update: ({ id }, url) => ({ on: `POST /v1/webhook_endpoints/${id}`, form: { url } }),
    remove: ({ id }) => ({ on: `DELETE /v1/webhook_endpoints/${id}` }),
    invalid: [{ on: "POST /v1/webhook_endpoints", form: {} }, [400, "Missing required param: url."]],
    unauthorized: [401, "Invalid API Key provided"],
    limited: [403, "required permissions"],
    gone: [404, "resource_missing"],
    quota: [400, "You have reached the maximum of 1 test webhook endpoints"],
    createdSecret: (created) => JSON.parse(created).secret,
    idPath: "$.id",
  },
  {
    preset: "microsoft-graph",
    start: startMicrosoftGraph,
    create: (address) => subscription(address, 3_600),
    list: { on: "GET /v1.0/subscriptions" },
    check: ({ id }) => ({ on: `GET /v1.0/subscriptions/${id}` }),
    renew: ({ id }) => ({
      on: `PATCH /v1.0/subscriptions/${id}`,
      json: { expirationDateTime: secondsAhead(2 * 3_600 - 1) },
    }),
    update: ({ id }, notificationUrl) => ({
      on: `PATCH /v1.0/subscriptions/${id}`,
      json: { notificationUrl },
    }),
    remove: ({ id }) => ({ on: `DELETE /v1.0/subscriptions/${id}` }),
    invalid: [
      subscription("http://127.0.0.1:9/hooks/ch_1", 4_231 * 60),
      [400, "Subscription expiration can only be 4230 minutes in the future."],
    ],
    unauthorized: [401, "InvalidAuthenticationToken"],
    limited: [403, "ErrorAccessDenied"],
    gone: [404, "ResourceNotFound"],
    quota: [403, "limit of 1 subscriptions"],
    lifetimeMs: 3_600_000,
    handshakes: 2,
    idPath: "none",
  },
  {
    preset: "google-drive",
    start: startGoogleDrive,
    ...google("/drive/v3/changes/watch?pageToken=1", 7),
  },
  {
    preset: "google-calendar",
    start: startGoogleCalendar,
    ...google("/calendar/v3/calendars/primary/events/watch", 30),
  },
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
    preset: "gitlab",
    start: startGitLab,
    create: (url) => ({
      on: "POST /api/v4/projects/acme%2Fshop/hooks",
      json: { url, token: OUR_SECRET, push_events: true },
    }),
    list: { on: "GET /api/v4/projects/acme%2Fshop/hooks?per_page=100" },
    check: ({ id }) => ({ on: `GET /api/v4/projects/acme%2Fshop/hooks/${id}` }),
    update: ({ id }, url) => ({ on: `PUT /api/v4/projects/acme%2Fshop/hooks/${id}`, json: { url } }),
    remove: ({ id }) => ({ on: `DELETE /api/v4/projects/acme%2Fshop/hooks/${id}` }),
    invalid: [{ on: "POST /api/v4/projects/acme%2Fshop/hooks", json: {} }, [400, "url is missing"]],
    unauthorized: [401, "401 Unauthorized"],
    limited: [403, "insufficient_scope"],
    gone: [404, "404 Not found"],
    quota: [422, "Maximum number of project hooks (1) exceeded"],
    idPath: "$headers['idempotency-key']",
  },
  {
    preset: "shopify",
    start: startShopify,
    create: (address) => ({
      on: "POST /admin/api/2026-01/webhooks.json",
      json: { webhook: { topic: "orders/create", address, format: "json" } },
    }),
    list: { on: "GET /admin/api/2026-01/webhooks.json?limit=250" },
    check: ({ id }) => ({ on: `GET /admin/api/2026-01/webhooks/${id}.json` }),
    update: ({ id }, address) => ({
      on: `PUT /admin/api/2026-01/webhooks/${id}.json`,
      json: { webhook: { id: Number(id), address } },
    }),
    remove: ({ id }) => ({ on: `DELETE /admin/api/2026-01/webhooks/${id}.json` }),
    authorize: (token) => ({ "x-shopify-access-token": token }),
    invalid: [
      { on: "POST /admin/api/2026-01/webhooks.json", json: { webhook: { topic: "ORDERS_CREATE" } } },
      [422, "Invalid topic specified: ORDERS_CREATE"],
    ],
    unauthorized: [401, "Invalid API key or access token"],
    limited: [403, "merchant approval"],
    gone: [404, "Not Found"],
    exists: [422, "for this topic has already been taken"],
    idPath: "$headers['x-shopify-webhook-id']",
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
    preset: "airtable",
    start: startAirtable,
    create: (notificationUrl) => ({
      on: "POST /v0/bases/app00000000000000/webhooks",
      json: { notificationUrl, specification: { options: { filters: { dataTypes: ["tableData"] } } } },
    }),
    list: { on: "GET /v0/bases/app00000000000000/webhooks" },
    check: ({ id }) => ({ on: `GET /v0/bases/app00000000000000/webhooks/${id}/payloads` }),
    renew: ({ id }) => ({ on: `POST /v0/bases/app00000000000000/webhooks/${id}/refresh` }),
    remove: ({ id }) => ({ on: `DELETE /v0/bases/app00000000000000/webhooks/${id}` }),
    invalid: [
      { on: "POST /v0/bases/app00000000000000/webhooks", json: {} },
      [422, "INVALID_REQUEST_UNKNOWN"],
    ],
    unauthorized: [401, "AUTHENTICATION_REQUIRED"],
    limited: [403, "INVALID_PERMISSIONS_OR_MODEL_NOT_FOUND"],
    gone: [404, "NOT_FOUND"],
    quota: [403, "TOO_MANY_WEBHOOKS_IN_BASE"],
    lifetimeMs: 7 * DAY_MS,
    createdSecret: (created) => JSON.parse(created).macSecretBase64,
    idPath: "none",
  },
  {
    preset: "jira",
    object: "app",
    start: startJira,
    config: { verification: { scheme: "jwt", algorithms: ["HS256"], keys: { from: "secrets" } } },
    create: (url) => ({
      on: "POST /rest/api/3/webhook",
      json: { url, webhooks: [{ events: ["jira:issue_created"], jqlFilter: "project = ED" }] },
    }),
    renew: ({ id }) => ({ on: "PUT /rest/api/3/webhook/refresh", json: { webhookIds: [Number(id)] } }),
    list: { on: "GET /rest/api/3/webhook" },
    remove: ({ id }) => ({ on: "DELETE /rest/api/3/webhook", json: { webhookIds: [Number(id)] } }),
    invalid: [{ on: "POST /rest/api/3/webhook", json: {} }, [400, "Invalid request payload"]],
    unauthorized: [401, "Unauthorized"],
    limited: [403, "not an app"],
    lifetimeMs: 30 * DAY_MS,
    idPath: "$headers['x-atlassian-webhook-identifier']",
    isSingle: true,
  },
  {
    preset: "jira",
    object: "admin",
    start: startJira,
    create: (url) => ({ on: "POST /rest/webhooks/1.0/webhook", json: jiraWebhook(url, "ours") }),
    list: { on: "GET /rest/webhooks/1.0/webhook" },
    check: ({ id }) => ({ on: `GET /rest/webhooks/1.0/webhook/${id}` }),
    update: ({ id }, url) => ({
      on: `PUT /rest/webhooks/1.0/webhook/${id}`,
      json: jiraWebhook(url, "ours"),
    }),
    remove: ({ id }) => ({ on: `DELETE /rest/webhooks/1.0/webhook/${id}` }),
    invalid: [{ on: "POST /rest/webhooks/1.0/webhook", json: {} }, [400, "needs a name"]],
    unauthorized: [401, "Unauthorized"],
    gone: [404, "does not exist"],
    idPath: "$headers['x-atlassian-webhook-identifier']",
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
];

for (const samples of PROVIDERS) describeProvider(samples);
