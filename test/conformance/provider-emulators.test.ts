import { startGitHub } from "../support/providers/github.ts";
import { describeProvider, OUR_SECRET, type ProviderSamples } from "./provider-emulator.suite.ts";

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

const PROVIDERS: readonly ProviderSamples[] = [
  hooksOf("/repos/acme/shop", "repository"),
  hooksOf("/orgs/acme", "organization"),
];

for (const samples of PROVIDERS) describeProvider(samples);
