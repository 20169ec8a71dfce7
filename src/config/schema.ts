import { resolve } from "node:path";
import { z } from "zod";
import { AGENT_MESSAGE_IDS } from "../event/agent-subscriber.ts";
import { isId } from "../lib/ids.ts";
import { infos, optional, type SettingInfo, setting } from "./setting.ts";
import {
  accepted,
  baseUrl,
  bearerToken,
  flag,
  hostAndPort,
  keyValues,
  listOf,
  MAX_PROCESSES,
  MIN_TOKEN_LENGTH,
  masterKey,
  network,
  oneOf,
  onOff,
  portNumber,
  processCount,
  ratio,
  SAMPLERS,
  sipProviders,
  text,
  traceUrl,
  url,
  webUrl,
  wholeNumber,
} from "./setting-types.ts";

export const ROLES = ["api", "hooks", "sources", "delivery"] as const;
export type Role = (typeof ROLES)[number];

/** Default limit of `node:http`. */
export const DEFAULT_HEADER_BYTES = 16 * 1024;
const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;

/** Ordered from weakest to strongest. */
const DURABILITIES = ["none", "process", "fsync", "replica"] as const;

/** Schema of all settings. The type `Config`, the documentation, `--help` and the example file are derived from it. */
export const settingsSchema = z.object({
  port: setting("INLET_PORT", portNumber, {
    defaultText: "8080",
    description: "Port to listen on. 0 chooses a free port and prints it.",
  }),
  host: setting("INLET_HOST", text, {
    defaultText: "127.0.0.1",
    description: "Address to listen on. The container image sets 0.0.0.0.",
  }),
  /** Absolute path. */
  dataDir: setting(
    "INLET_DATA_DIR",
    z.string().transform((path) => resolve(path)),
    {
      defaultText: "./data",
      description:
        "Directory of the embedded PostgreSQL, the embedded Redis and the master key. Only one gateway at a time can use it.",
    },
  ),
  roles: setting("INLET_ROLES", listOf(oneOf(ROLES)), {
    defaultText: ROLES.join(","),
    description:
      "Roles of this process: any of api, hooks, sources, delivery. With `hooks` alone it only serves hooks and health checks.",
  }),
  processes: setting("INLET_PROCESSES", processCount, {
    defaultText: "1",
    description: `Number of gateway processes that share the port, 1 to ${MAX_PROCESSES}. \`auto\` starts one per core. Keep 1 in a Kubernetes pod.`,
  }),
  backgroundProcesses: setting("INLET_BACKGROUND_PROCESSES", wholeNumber(0, MAX_PROCESSES - 1), {
    defaultText: "0",
    description:
      "Number of INLET_PROCESSES that run the roles sources and delivery and get no connections. The others then have the roles api and hooks. With 0, all processes have all roles.",
  }),
  baseUrl: optional("INLET_BASE_URL", baseUrl, {
    unsetMeans: "derived from host and port",
    description: "Public URL of the management API, used in output and links. /v1 is appended if missing.",
  }),
  hooksUrl: optional("INLET_HOOKS_URL", baseUrl, {
    unsetMeans: "the base URL without /v1",
    description: "Public base URL of channel addresses, without /hooks/{channelId}.",
  }),
  apiKey: optional("INLET_API_KEY", bearerToken, {
    description: `API key with all permissions in the default organization, for automation; at least ${MIN_TOKEN_LENGTH} characters. Its hash is stored in the database, so the key stays valid after you remove this setting.`,
    secret: true,
  }),
  oidcIssuer: optional("INLET_OIDC_ISSUER", webUrl, {
    description:
      "OpenID Connect issuer whose tokens are accepted, spelled exactly as in its tokens. The subject of a token must match an Identity with this issuer as its provider in the requested organization.",
  }),
  oidcAudience: optional("INLET_OIDC_AUDIENCE", text, {
    description: "Audience that tokens of the issuer must have. Required with INLET_OIDC_ISSUER.",
  }),
  oidcOrganizationClaim: optional("INLET_OIDC_ORGANIZATION_CLAIM", text, {
    description:
      "Claim of the issuer's tokens that contains the id of the organization. Without it and INLET_OIDC_ORGANIZATION, callers send the id in `X-Organization-Id` or to `POST /auth/tokens`.",
  }),
  oidcOrganization: optional(
    "INLET_OIDC_ORGANIZATION",
    accepted((id) => isId("org", id), "must be the id of an organization (`org_…`)"),
    {
      description: "Id of the organization for the issuer's tokens that have no organization claim.",
    },
  ),
  oidcConsoleClientId: optional("INLET_OIDC_CONSOLE_CLIENT_ID", text, {
    description:
      "Client id for signing in to the console with that issuer (public client, code flow with PKCE). Register the URL of this gateway with /console/callback as its redirect URL.",
  }),
  apiRequestsPerMinute: setting("INLET_API_REQUESTS_PER_MINUTE", wholeNumber(1, 1_000_000_000), {
    defaultText: "600",
    description: "Maximum management API requests per minute for each API key, over all gateways.",
  }),
  hookRequestsPerSecond: setting("INLET_HOOK_REQUESTS_PER_SECOND", wholeNumber(1, 1_000_000_000), {
    defaultText: "1000",
    description:
      "Maximum items per second that one gateway accepts from the hooks of an organization. Also the maximum deliveries per second of each channel, which may set a lower limit.",
  }),
  hookFastPath: setting("INLET_HTTP_FAST_PATH", onOff, {
    defaultText: "on",
    description:
      "Whether plain hook requests are read without Node's HTTP server, which saves CPU time. `off` lets Node read all requests.",
  }),
  maxHeaderBytes: setting("INLET_MAX_HEADER_BYTES", wholeNumber(8_192, 131_072), {
    defaultText: String(DEFAULT_HEADER_BYTES),
    description:
      "Maximum size of the request line and headers of a request, in bytes. Larger requests get 431. Raise it for senders with long signatures or tokens. The limit of your proxy must be at least as high.",
  }),
  sourceDeliveriesPerSecond: setting("INLET_SOURCE_DELIVERIES_PER_SECOND", wholeNumber(1, 1_000_000_000), {
    defaultText: "1000",
    description:
      "Maximum items per second from the sources of one organization, per gateway with the role `sources`. Faster streams and polls are slowed down.",
  }),
  pollConcurrency: setting("INLET_POLL_CONCURRENCY", wholeNumber(1, 1_000), {
    defaultText: "50",
    description: "Maximum concurrent polls per gateway with the role `sources`. Its processes share them.",
  }),
  pollsPerOrigin: setting("INLET_POLLS_PER_ORIGIN", wholeNumber(1, 10_000), {
    defaultText: "10",
    description:
      "Maximum concurrent polls of one server (scheme, host and port), over all gateways. Polls beyond this number wait.",
  }),
  pollsPerOrganization: setting("INLET_POLLS_PER_ORGANIZATION", wholeNumber(1, 10_000), {
    defaultText: "50",
    description:
      "Maximum concurrent polls of one organization, over all gateways. Polls beyond this number wait.",
  }),
  sipProviders: setting("INLET_SIP_PROVIDERS", sipProviders, {
    defaultText: "sip_provider_1,sip_provider_2,sip_provider_3",
    description:
      "Names of the three telephony carriers for SIP trunks and phone numbers, in lower case, separated by commas.",
  }),
  masterKey: optional("INLET_MASTER_KEY", masterKey, {
    unsetMeans: "created in the data directory",
    description: "Key that encrypts stored secrets: 32 bytes as base64 or hex. Required with DATABASE_URL.",
    secret: true,
  }),
  newMasterKey: optional("INLET_NEW_MASTER_KEY", masterKey, {
    unsetMeans: "created in the data directory",
    description:
      "Key that replaces INLET_MASTER_KEY when you run `inlet rotate-master-key`. A gateway that has both settings keeps running during the rotation. Restart all other gateways afterwards.",
    secret: true,
  }),
  topicMebibytesPerOrganization: optional(
    "INLET_TOPIC_MEBIBYTES_PER_ORGANIZATION",
    wholeNumber(1, 1_000_000_000),
    {
      unsetMeans: "2048, or a quarter of Redis' `maxmemory` if that is less",
      description:
        "Maximum MiB in the topics of one organization, except the first organization. If an organization exceeds the limit, Inlet first trims entries that all consumer groups have acknowledged. If this is not enough, its hooks respond with 429 and its sources wait.",
    },
  ),
  rowsPerResource: setting("INLET_ROWS_PER_RESOURCE", wholeNumber(1, 1_000_000_000), {
    defaultText: "100000",
    description: "Maximum rows of each resource per organization, except the first organization.",
  }),
  auditRetentionDays: setting("INLET_AUDIT_RETENTION_DAYS", wholeNumber(1, 36_500), {
    defaultText: "365",
    description: "Number of days to keep the audit log.",
  }),
  trustProxy: setting("INLET_TRUST_PROXY", listOf(network, "none"), {
    defaultText: "none",
    description:
      "Networks of proxies whose X-Forwarded-For is trusted, as a comma-separated list. Rate limits and log lines then use the client's address.",
  }),
  allowNetworks: setting("INLET_ALLOW_NETWORKS", listOf(network, "none"), {
    defaultText: "none",
    description:
      "Private networks that outbound calls (sources, OAuth) may reach, as a comma-separated list.",
  }),
  logLevel: setting("INLET_LOG_LEVEL", oneOf(LOG_LEVELS), {
    defaultText: "info",
    description: `Minimum level of log lines: ${LOG_LEVELS.join(", ")}.`,
  }),
  drainDelaySeconds: optional("INLET_DRAIN_DELAY_SECONDS", wholeNumber(0, 3_600), {
    unsetMeans: "5, or 0 if started from a terminal",
    description:
      "Seconds for which a stopping gateway keeps serving requests after /readyz reports that it is stopping. Choose more than the interval at which your load balancer checks /readyz.",
  }),
  durability: optional("INLET_DURABILITY", oneOf(DURABILITIES), {
    unsetMeans: "level `none`, with a warning if REDIS_URL is set",
    description:
      "Durability that a 200 response guarantees, checked at startup: none, process (append-only file), fsync, replica (fsync and one replica).",
  }),
  durabilityAsserted: setting("INLET_DURABILITY_ASSERTED", flag, {
    defaultText: "0",
    description: "Set to 1 to skip the durability check when Redis does not allow reading its settings.",
  }),
  metricsToken: optional("INLET_METRICS_TOKEN", bearerToken, {
    description: `Bearer token for /metrics, at least ${MIN_TOKEN_LENGTH} characters. If unset, the gateway's port does not serve /metrics.`,
    secret: true,
  }),
  metricsListen: optional("INLET_METRICS_LISTEN", hostAndPort, {
    description:
      "Separate address for /metrics without a token, as host:port (127.0.0.1:9464). Use it in a network that only Prometheus can reach.",
  }),
  metricsChannels: setting("INLET_METRICS_CHANNELS", wholeNumber(0, 1_000), {
    defaultText: "100",
    description:
      "Number of channels, subscriptions and organizations that /metrics shows individually, busiest first. The others are combined.",
  }),
  mcpWrites: setting("INLET_MCP_WRITES", flag, {
    defaultText: "0",
    description:
      "Whether agents that connect to /mcp get tools that change something, such as redrive and pause. Each tool still needs the caller's permission.",
  }),
  mcpWebhookId: setting("INLET_MCP_WEBHOOK_ID", oneOf(AGENT_MESSAGE_IDS), {
    defaultText: "event",
    description:
      "Header `webhook-id` of events that Inlet sends to agents. `event`: the id of the event, which ChatGPT and the AI SDK require. `message`: an id of the message, as SEP-3415 defines it.",
  }),
  otlpEndpoint: optional("OTEL_EXPORTER_OTLP_ENDPOINT", baseUrl, {
    unsetMeans: "no traces",
    description:
      "Base URL of an OpenTelemetry receiver for traces, such as http://127.0.0.1:4318. Spans are sent to its path /v1/traces in OTLP over HTTP (protobuf).",
  }),
  otlpHeaders: setting("OTEL_EXPORTER_OTLP_HEADERS", keyValues, {
    defaultText: "",
    description:
      "Headers of the requests to that receiver: comma-separated name=value pairs with percent-encoded values.",
    secret: true,
  }),
  tracesSampler: setting("OTEL_TRACES_SAMPLER", oneOf(SAMPLERS), {
    defaultText: "parentbased_always_on",
    description: `Which deliveries are traced: ${SAMPLERS.join(", ")}. The \`parentbased_\` samplers follow the sender on channels with \`trustTrace\`.`,
  }),
  tracesSamplerArg: setting("OTEL_TRACES_SAMPLER_ARG", ratio, {
    defaultText: "1",
    description:
      "Share of the deliveries that the `traceidratio` samplers trace, from 0 to 1. For example, 0.01 traces 1 %.",
  }),
  otelServiceName: setting("OTEL_SERVICE_NAME", text, {
    defaultText: "inlet",
    description: "Name of the service in traces.",
  }),
  otelResourceAttributes: setting("OTEL_RESOURCE_ATTRIBUTES", keyValues, {
    defaultText: "",
    description:
      "Resource attributes of traces, such as deployment.environment.name=staging: comma-separated name=value pairs with percent-encoded values.",
  }),
  otelScheduleDelayMs: setting("OTEL_BSP_SCHEDULE_DELAY", wholeNumber(1, 600_000), {
    defaultText: "5000",
    description:
      "Maximum milliseconds for which spans wait, so that more of them are exported together. If 512 spans wait, they are exported immediately.",
  }),
  traceUrl: optional("INLET_TRACE_URL", traceUrl, {
    unsetMeans: "no links",
    description:
      "Address of a trace in your tracing tool, such as https://tempo.example.com/trace/{traceId}. The console and the API then link deliveries to their traces.",
  }),
  databaseUrl: optional("DATABASE_URL", url(["postgresql:", "postgres:"], { anyPart: true }), {
    unsetMeans: "embedded PostgreSQL",
    description: "URL of the PostgreSQL database.",
    secret: true,
  }),
  redisUrls: setting("REDIS_URL", listOf(url(["redis:", "rediss:", "unix:"], { anyPart: true }), "none"), {
    defaultText: "none",
    unsetMeans: "embedded redis-server",
    description: "URL of Redis. For a Redis Cluster, the URLs of several nodes, separated by commas.",
    secret: true,
  }),
});

export type Config = Readonly<z.output<typeof settingsSchema>>;

/** All settings in the order of the schema. `key` is the property name in `Config`. */
export const SETTING_LIST: readonly (SettingInfo & { readonly key: string })[] = Object.entries(
  settingsSchema.shape,
).flatMap(([key, schema]) => {
  const info = infos.get(schema);
  return info ? [{ key, ...info }] : [];
});
