import { sharedPresets } from "../support/presets.ts";
import { startAirtable } from "../support/providers/airtable.ts";
import { startAsana } from "../support/providers/asana.ts";
import { startBitbucket } from "../support/providers/bitbucket.ts";
import { startCalendly } from "../support/providers/calendly.ts";
import type { Emulator, StartEmulator } from "../support/providers/emulator.ts";
import { TOKEN_PATH } from "../support/providers/emulator-server.ts";
import { startForgejo, startGitea } from "../support/providers/gitea.ts";
import { startGitHub } from "../support/providers/github.ts";
import { startGitLab } from "../support/providers/gitlab.ts";
import { startGmail } from "../support/providers/gmail.ts";
import { startGoogleCalendar, startGoogleDrive } from "../support/providers/google-push.ts";
import { startHubSpot } from "../support/providers/hubspot.ts";
import { startJira } from "../support/providers/jira.ts";
import { startMicrosoftGraph } from "../support/providers/microsoft-graph.ts";
import { startShopify } from "../support/providers/shopify.ts";
import { startStripe } from "../support/providers/stripe.ts";
import { startTelegram } from "../support/providers/telegram.ts";
import { startTrello } from "../support/providers/trello.ts";
import { startTwitch } from "../support/providers/twitch.ts";
import { startTypeform } from "../support/providers/typeform.ts";
import { startWebSubHub } from "../support/providers/websub-hub.ts";

/** A registration of a preset, with the emulator of its provider. */
export interface ProviderSample {
  readonly preset: string;
  readonly target: string;
  readonly start: StartEmulator;
  /** Parameters. A function if they contain the provider's address, so that the registration has no `baseUrl`. */
  readonly params: Readonly<Record<string, unknown>> | ((provider: Emulator) => object);
  /** Path that follows the emulator's origin in `baseUrl`. */
  readonly basePath?: string;
  /** Kind and config of the connection. By default, it sends the token as `Bearer`. */
  readonly connection?: (provider: Emulator) => { readonly kind: string; readonly config: object };
  /** Further settings of the channel, such as the secret of the app. */
  readonly config?: object | ((provider: Emulator) => object);
  /** Sets up the provider before the registration. */
  readonly prepare?: (provider: Emulator, address: string) => Promise<unknown>;
  /** Whether the provider needs no credentials. */
  readonly isOpen?: boolean;
  /** Whether the webhook ends only with its lease, because Inlet confirms no removal. */
  readonly endsWithLease?: boolean;
}

const GMAIL_TOPIC = "projects/ours/topics/gmail";
const GMAIL_SERVICE_ACCOUNT = "push@ours.iam.gserviceaccount.com";

const APP_SECRET = { secrets: [{ value: "secret-of-the-app" }] };

const byHeader =
  (name: string) =>
  ({ token }: Emulator) => ({
    kind: "apiKey",
    config: { in: "header", name, value: token },
  });

const byOAuth = ({ url, token }: Emulator) => ({
  kind: "oauth2",
  config: {
    grant: "clientCredentials",
    tokenEndpoint: `${url}${TOKEN_PATH}?token=${token}`,
    clientId: "inlet",
    clientSecret: "secret-of-the-client",
  },
});

export const PROVIDER_SAMPLES: readonly ProviderSample[] = [
  { preset: "airtable", target: "base", start: startAirtable, params: { baseId: "app00000000000000" } },
  {
    preset: "asana",
    target: "resource",
    start: startAsana,
    basePath: "/api/1.0",
    params: { resource: "1331", workspace: "1337" },
  },
  {
    preset: "bitbucket",
    target: "repository",
    start: startBitbucket,
    basePath: "/2.0",
    params: { workspace: "acme", repo: "shop" },
  },
  {
    preset: "bitbucket",
    target: "workspace",
    start: startBitbucket,
    basePath: "/2.0",
    params: { workspace: "acme" },
  },
  { preset: "calendly", target: "organization", start: startCalendly, params: { organization: "ours" } },
  {
    preset: "forgejo",
    target: "repository",
    start: startForgejo,
    basePath: "/api/v1",
    params: { owner: "acme", repo: "shop" },
  },
  {
    preset: "forgejo",
    target: "organization",
    start: startForgejo,
    basePath: "/api/v1",
    params: { org: "acme" },
  },
  {
    preset: "gitea",
    target: "repository",
    start: startGitea,
    basePath: "/api/v1",
    params: { owner: "acme", repo: "shop" },
  },
  {
    preset: "gitea",
    target: "organization",
    start: startGitea,
    basePath: "/api/v1",
    params: { org: "acme" },
  },
  { preset: "github", target: "repository", start: startGitHub, params: { owner: "acme", repo: "shop" } },
  { preset: "github", target: "organization", start: startGitHub, params: { org: "acme" } },
  {
    preset: "gitlab",
    target: "project",
    start: startGitLab,
    basePath: "/api/v4",
    params: { project: "acme/shop" },
  },
  { preset: "gitlab", target: "group", start: startGitLab, basePath: "/api/v4", params: { group: "acme" } },
  {
    preset: "gmail",
    target: "mailbox",
    start: startGmail,
    params: { topic: GMAIL_TOPIC, label: "INBOX" },
    connection: byOAuth,
    // Google alone has the private key of the URL in the preset, so the channel gets the emulator's public key.
    config: ({ keys = "" }: Emulator & { keys?: string }) => ({
      verification: {
        ...sharedPresets().get("gmail")?.verification,
        keys: { from: "settings", keys: [keys] },
      },
      secrets: [{ value: GMAIL_SERVICE_ACCOUNT }],
    }),
    prepare: ({ url, token }, pushEndpoint) =>
      fetch(`${url}/v1/projects/ours/subscriptions/gmail`, {
        method: "PUT",
        headers: { authorization: `Bearer ${token}` },
        body: JSON.stringify({
          topic: GMAIL_TOPIC,
          pushConfig: { pushEndpoint, oidcToken: { serviceAccountEmail: GMAIL_SERVICE_ACCOUNT } },
        }),
      }),
  },
  {
    preset: "google-calendar",
    target: "events",
    start: startGoogleCalendar,
    params: {},
    connection: byOAuth,
  },
  { preset: "google-drive", target: "changes", start: startGoogleDrive, params: {}, connection: byOAuth },
  {
    preset: "hubspot",
    target: "app",
    start: startHubSpot,
    params: { appId: "1160452" },
    connection: ({ token }) => ({ kind: "apiKey", config: { in: "query", name: "hapikey", value: token } }),
    config: APP_SECRET,
  },
  {
    preset: "jira",
    target: "site",
    start: startJira,
    params: { site: "acme" },
    connection: ({ token }) => ({ kind: "basic", config: { username: "ours@example.com", password: token } }),
  },
  {
    preset: "microsoft-graph",
    target: "resource",
    start: startMicrosoftGraph,
    params: { resource: "me/messages" },
    connection: byOAuth,
  },
  {
    preset: "shopify",
    target: "topic",
    start: startShopify,
    basePath: "/admin/api/2026-10",
    params: { shop: "acme", topic: "orders/create" },
    connection: byHeader("X-Shopify-Access-Token"),
    config: APP_SECRET,
  },
  { preset: "stripe", target: "account", start: startStripe, params: {} },
  {
    preset: "telegram",
    target: "bot",
    start: startTelegram,
    params: {},
    connection: ({ token }) => ({ kind: "custom", config: { fields: { token }, path: "/bot{{token}}" } }),
  },
  {
    preset: "trello",
    target: "model",
    start: startTrello,
    basePath: "/1",
    params: { model: "5abbe4b7ddc1b351ef961414" },
    connection: ({ token }) => ({
      kind: "custom",
      config: { fields: { token }, query: { key: "ours", token: "{{token}}" } },
    }),
    config: APP_SECRET,
  },
  {
    preset: "twitch",
    target: "subscription",
    start: startTwitch,
    params: { clientId: "ours", type: "stream.online", broadcasterUserId: "1337" },
    connection: byOAuth,
  },
  { preset: "typeform", target: "form", start: startTypeform, params: { form: "abc123" } },
  {
    preset: "websub",
    target: "topic",
    start: startWebSubHub,
    params: ({ url }) => ({ hub: url, topic: "https://example.com/feed" }),
    isOpen: true,
    endsWithLease: true,
  },
  {
    preset: "youtube",
    target: "channel",
    start: (options) => startWebSubHub({ ...options, algorithm: "sha1" }),
    params: { channelId: "UC_x5XG1OV2P6uZZ5FSM9Ttw" },
    isOpen: true,
    endsWithLease: true,
  },
];
