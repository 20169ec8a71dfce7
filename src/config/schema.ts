import { resolve } from "node:path";
import { z } from "zod";
import { NO_NETWORK, parseNetwork } from "../lib/addresses/networks.ts";
import { isId } from "../lib/ids.ts";
import { parseMasterKey } from "../lib/secrets/master-key.ts";

export const ROLES = ["api", "hooks", "sources", "delivery"] as const;
export type Role = (typeof ROLES)[number];

const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;

/** Ordered from weakest to strongest. */
export const DURABILITIES = ["none", "process", "fsync", "replica"] as const;
export type Durability = (typeof DURABILITIES)[number];

/** Description of a setting in the documentation, in `--help` and in error messages. */
export interface SettingInfo {
  readonly name: string;
  /** Default value as text. If omitted, the setting is `undefined` by default. */
  readonly defaultText?: string;
  /** Describes the default in words, if `defaultText` is missing or unclear. */
  readonly unsetMeans?: string;
  readonly description: string;
  /** Whether the value is secret, so that it is never quoted. */
  readonly secret?: boolean;
}

/** Parses the text of a setting. Error messages never quote the text, because it may be secret. */
type Type<T> = z.ZodType<T, string>;

const infos = z.registry<SettingInfo>();

function setting<T>(
  name: string,
  type: Type<T>,
  info: Omit<SettingInfo, "name"> & { readonly defaultText: string },
): z.ZodType<T, string | undefined> {
  return type.prefault(info.defaultText).register(infos, { name, ...info });
}

function optional<T>(
  name: string,
  type: Type<T>,
  info: Omit<SettingInfo, "name" | "defaultText">,
): z.ZodType<T | undefined, string | undefined> {
  return type.optional().register(infos, { name, ...info });
}

const text: Type<string> = z.string();

const accepted = (isAccepted: (text: string) => boolean, problem: string) =>
  z.string().refine(isAccepted, { error: problem });

/** A TCP port. 0 lets the system choose one. */
const portNumber = z
  .string()
  .regex(/^(?!tcp:\/\/)/, {
    error:
      "must be a port number; if Kubernetes set this variable for a service called `inlet`, set `enableServiceLinks: false` on the pod",
  })
  .refine((digits) => /^\d{1,5}$/.test(digits) && Number(digits) <= 65_535, {
    error: "must be a port number from 0 to 65535",
  })
  .transform(Number);

/** For example `127.0.0.1:9464` or `[::1]:9464`. */
const hostAndPort = z.string().transform((text, context) => {
  const [, host = "", digits = ""] = /^(\[[0-9A-Fa-f:.]+\]|[^\s:/[\]]+):(\d{1,5})$/.exec(text) ?? [];
  const port = Number(digits);
  if (host !== "" && port <= 65_535) return { host: host.replace(/^\[|\]$/g, ""), port };
  context.addIssue("must be host:port, for example 127.0.0.1:9464");
  return z.NEVER;
});

const wholeNumber = (min: number, max: number): Type<number> =>
  accepted(
    (digits) => /^\d{1,10}$/.test(digits) && Number(digits) >= min && Number(digits) <= max,
    `must be an integer from ${min} to ${max}`,
  ).transform(Number);

const flag = z.enum(["0", "1"], { error: "must be 0 or 1" }).transform((digit) => digit === "1");

const onOff = z.enum(["on", "off"], { error: "must be on or off" }).transform((word) => word === "on");

const oneOf = <T extends string>(values: readonly T[]) =>
  z.string().pipe(z.enum(values, { error: `must be one of ${values.join(", ")}` }));

const MIN_TOKEN_LENGTH = 16;

/** A bearer token (RFC 6750, section 2.1) that is long enough to be unguessable. */
const bearerToken = accepted(
  (token) => token.length >= MIN_TOKEN_LENGTH && /^[A-Za-z0-9._~+/-]+=*$/.test(token),
  `must be at least ${MIN_TOKEN_LENGTH} characters of A-Z a-z 0-9 . _ ~ + / -`,
);

/** A comma-separated list without duplicates. If `emptyWord` is given, it stands for an empty list. */
const listOf = <T>(type: Type<T>, emptyWord?: string): Type<readonly T[]> =>
  z
    .string()
    .transform((list) => (list === emptyWord ? [] : list.split(",").map((part) => part.trim())))
    .refine((parts) => !parts.includes(""), { error: "must be a comma-separated list without empty parts" })
    .pipe(z.array(type))
    .transform((values) => [...new Set(values)]);

const network = z.string().transform((text, context) => {
  const parsed = parseNetwork(text);
  if (parsed === undefined) context.addIssue(NO_NETWORK);
  return parsed ?? z.NEVER;
});

/** An absolute URL with one of these schemes. Credentials, a query or a fragment are rejected unless `anyPart` is true. */
function url(schemes: readonly string[], { anyPart = false } = {}) {
  const beginnings = schemes.map((scheme) => `${scheme}//`).join(" or ");
  return accepted(
    (text) => {
      const parsed = URL.parse(text);
      const isPlain = parsed && !parsed.username && !parsed.password && !parsed.search && !parsed.hash;
      const hasPlace = parsed?.protocol === "unix:" ? parsed.pathname.length > 1 : parsed?.host;
      return Boolean(parsed && schemes.includes(parsed.protocol) && hasPlace && (anyPart || isPlain));
    },
    `must be a URL that begins with ${beginnings}${anyPart ? "" : " without credentials, query or fragment"}`,
  );
}

const webUrl = url(["https:", "http:"]);
const baseUrl = webUrl.transform((text) => text.replace(/\/+$/, ""));

const masterKey = z.string().transform((text, context) => {
  const key = parseMasterKey(text);
  if (key) return key;
  context.addIssue("must be 32 bytes as base64 or as 64 hexadecimal digits (`openssl rand -base64 32`)");
  return z.NEVER;
});

const SIP_PROVIDERS = 3;

const sipProviders = listOf(
  accepted((name) => /^[a-z0-9_.-]{1,64}$/.test(name), "must be 1 to 64 characters of a-z 0-9 _ . -"),
).refine(({ length }) => length === SIP_PROVIDERS, { error: `must be ${SIP_PROVIDERS} different names` });

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
  sourceDeliveriesPerSecond: setting("INLET_SOURCE_DELIVERIES_PER_SECOND", wholeNumber(1, 1_000_000_000), {
    defaultText: "1000",
    description:
      "Maximum items per second from the sources of one organization, per process with the role `sources`. Faster streams and polls are slowed down.",
  }),
  pollConcurrency: setting("INLET_POLL_CONCURRENCY", wholeNumber(1, 1_000), {
    defaultText: "50",
    description: "Maximum concurrent polls per process with the role `sources`.",
  }),
  pollsPerOrigin: setting("INLET_POLLS_PER_ORIGIN", wholeNumber(1, 10_000), {
    defaultText: "10",
    description:
      "Maximum concurrent polls of one server (scheme, host and port), over all gateways. Further polls wait.",
  }),
  pollsPerOrganization: setting("INLET_POLLS_PER_ORGANIZATION", wholeNumber(1, 10_000), {
    defaultText: "50",
    description: "Maximum concurrent polls of one organization, over all gateways. Further polls wait.",
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
      "Key that replaces INLET_MASTER_KEY when you run `inlet rotate-master-key`. Gateways with both settings keep running during the rotation. Restart all others after it.",
    secret: true,
  }),
  topicMebibytesPerOrganization: optional(
    "INLET_TOPIC_MEBIBYTES_PER_ORGANIZATION",
    wholeNumber(1, 1_000_000_000),
    {
      unsetMeans: "2048, or a quarter of Redis' `maxmemory` if that is less",
      description:
        "Maximum MiB in the topics of one organization, except the first organization. Over the limit, entries that all groups have acknowledged are trimmed first. Then its hooks receive 429 and its sources wait.",
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
  durability: setting("INLET_DURABILITY", oneOf(DURABILITIES), {
    defaultText: "none",
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
