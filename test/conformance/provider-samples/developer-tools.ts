import { startAsana } from "../../support/providers/asana.ts";
import { startBitbucket } from "../../support/providers/bitbucket.ts";
import type { StartEmulator } from "../../support/providers/emulator.ts";
import { startForgejo, startGitea } from "../../support/providers/gitea.ts";
import { startGitHub } from "../../support/providers/github.ts";
import { startGitLab } from "../../support/providers/gitlab.ts";
import { startJira } from "../../support/providers/jira.ts";
import { startTrello } from "../../support/providers/trello.ts";
import { OUR_SECRET, type ProviderSamples } from "../provider-emulator.suite.ts";

const DAY_MS = 86_400_000;

const TRELLO_BOARD = "5abbe4b7ddc1b351ef961414";

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

const jiraWebhook = (url: string, name: string): object => ({
  name,
  url,
  events: ["jira:issue_created"],
  secret: OUR_SECRET,
});

const giteaHooks = (preset: string, start: StartEmulator): ProviderSamples => {
  const hooks = "/api/v1/repos/acme/shop/hooks";
  return {
    preset,
    start,
    create: (url) => ({
      on: `POST ${hooks}`,
      json: { type: preset, active: true, config: { url, content_type: "json", secret: OUR_SECRET } },
    }),
    list: { on: `GET ${hooks}?limit=50` },
    check: ({ id }) => ({ on: `GET ${hooks}/${id}` }),
    remove: ({ id }) => ({ on: `DELETE ${hooks}/${id}` }),
    invalid: [{ on: `POST ${hooks}`, json: { type: "none", config: {} } }, [422, "Invalid hook type: none"]],
    unauthorized: [401, "invalid username, password or token"],
    limited: [403, "required scope"],
    gone: [404, "couldn't be found"],
    idPath: `$headers['x-${preset}-delivery']`,
  };
};

const bitbucketHook = (url: string): object => ({
  description: "ours",
  url,
  active: true,
  secret: OUR_SECRET,
  events: ["repo:push"],
});

export const DEVELOPER_TOOLS: readonly ProviderSamples[] = [
  hooksOf("/repos/acme/shop", "repository"),
  hooksOf("/orgs/acme", "organization"),
  giteaHooks("gitea", startGitea),
  giteaHooks("forgejo", startForgejo),
  {
    preset: "bitbucket",
    start: startBitbucket,
    create: (url) => ({ on: "POST /2.0/repositories/acme/shop/hooks", json: bitbucketHook(url) }),
    list: { on: "GET /2.0/repositories/acme/shop/hooks?pagelen=100" },
    check: ({ id }) => ({ on: `GET /2.0/repositories/acme/shop/hooks/${id}` }),
    update: ({ id }, url) => ({
      on: `PUT /2.0/repositories/acme/shop/hooks/${id}`,
      json: bitbucketHook(url),
    }),
    remove: ({ id }) => ({ on: `DELETE /2.0/repositories/acme/shop/hooks/${id}` }),
    invalid: [{ on: "POST /2.0/repositories/acme/shop/hooks", json: {} }, [400, "url: Required"]],
    unauthorized: [401, "Token is invalid"],
    limited: [403, "privilege scopes"],
    gone: [404, "Resource not found"],
    quota: [400, "limit of 1 webhooks"],
    idPath: "$headers['x-request-uuid']",
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
    preset: "asana",
    start: startAsana,
    create: (target) => ({
      on: "POST /api/1.0/webhooks",
      json: { data: { resource: "1337", target, filters: [] } },
    }),
    list: { on: "GET /api/1.0/webhooks?workspace=1&limit=100" },
    check: ({ id }) => ({ on: `GET /api/1.0/webhooks/${id}` }),
    remove: ({ id }) => ({ on: `DELETE /api/1.0/webhooks/${id}` }),
    invalid: [{ on: "POST /api/1.0/webhooks", json: { data: {} } }, [400, "Missing input"]],
    unauthorized: [401, "Not Authorized"],
    limited: [403, "Forbidden"],
    gone: [404, "webhook: Unknown object"],
    exists: [403, "Duplicated webhook"],
    quota: [403, "limit of 1 webhooks"],
    handshakes: 1,
    createdSecret: (created) => JSON.parse(created)["X-Hook-Secret"],
    idPath: "none",
  },
  {
    preset: "trello",
    start: startTrello,
    create: (address) => ({
      on: `POST /1/webhooks?key=ours&token={token}&callbackURL=${encodeURIComponent(address)}&idModel=${TRELLO_BOARD}`,
    }),
    list: { on: "GET /1/tokens/{token}/webhooks?key=ours&token={token}" },
    check: ({ id }) => ({ on: `GET /1/webhooks/${id}?key=ours&token={token}` }),
    update: ({ id }, address) => ({
      on: `PUT /1/webhooks/${id}?key=ours&token={token}&callbackURL=${encodeURIComponent(address)}`,
    }),
    remove: ({ id }) => ({ on: `DELETE /1/webhooks/${id}?key=ours&token={token}` }),
    invalid: [
      { on: `POST /1/webhooks?key=ours&token={token}&idModel=${TRELLO_BOARD}` },
      [400, "A valid callbackURL is required"],
    ],
    unauthorized: [401, "invalid token"],
    limited: [401, "unauthorized permission requested"],
    gone: [404, "The requested resource was not found."],
    exists: [400, "A webhook with that callback, model, and token already exists"],
    quota: [400, "too many webhooks"],
    handshakes: 1,
    idPath: "$.action.id",
  },
];
