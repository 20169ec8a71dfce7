import type { Hook } from "../support/providers/emulator.ts";
import { startGitHub } from "../support/providers/github.ts";
import { startGoogleCalendar, startGoogleDrive } from "../support/providers/google-push.ts";
import { startMicrosoftGraph } from "../support/providers/microsoft-graph.ts";
import { startStripe } from "../support/providers/stripe.ts";
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
];

for (const samples of PROVIDERS) describeProvider(samples);
