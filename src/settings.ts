import { resolve } from "node:path";
import { z } from "zod";
import { NO_NETWORK, parseNetwork } from "./lib/addresses/networks.ts";
import { isId } from "./lib/ids.ts";
import { parseMasterKey } from "./lib/secrets/master-key.ts";

export const ROLES = ["api", "hooks", "sources", "delivery"] as const;
export type Role = (typeof ROLES)[number];

const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;

/** From the weakest promise to the strongest. */
export const DURABILITIES = ["none", "process", "fsync", "replica"] as const;
export type Durability = (typeof DURABILITIES)[number];

/** How a setting presents itself, wherever settings are listed. */
export interface SettingInfo {
  readonly name: string;
  /** An unset setting is read from this text; without it, an unset one has no value. */
  readonly defaultText?: string;
  /** The default in words, where there is no text or the text says too little. */
  readonly unsetMeans?: string;
  readonly description: string;
  /** Its value is never quoted. */
  readonly secret?: boolean;
}

/** Reads the text of a setting. Its errors say what the text must be; they never quote the text, which may be secret. */
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

/** A TCP port; 0 lets the system choose one. */
const portNumber = z
  .string()
  .regex(/^(?!tcp:\/\/)/, {
    error:
      "must be a port number; Kubernetes sets this name for a service called `inlet`: set `enableServiceLinks: false` on the pod",
  })
  .refine((digits) => /^\d{1,5}$/.test(digits) && Number(digits) <= 65_535, {
    error: "must be a port number from 0 to 65535",
  })
  .transform(Number);

/** `127.0.0.1:9464`, `[::1]:9464`. */
const hostAndPort = z.string().transform((text, context) => {
  const [, host = "", digits = ""] = /^(\[[0-9A-Fa-f:.]+\]|[^\s:/[\]]+):(\d{1,5})$/.exec(text) ?? [];
  const port = Number(digits);
  if (host !== "" && port <= 65_535) return { host: host.replace(/^\[|\]$/g, ""), port };
  context.addIssue("must be host:port, such as 127.0.0.1:9464");
  return z.NEVER;
});

const wholeNumber = (min: number, max: number): Type<number> =>
  accepted(
    (digits) => /^\d{1,10}$/.test(digits) && Number(digits) >= min && Number(digits) <= max,
    `must be a whole number from ${min} to ${max}`,
  ).transform(Number);

const flag = z.enum(["0", "1"], { error: "must be 0 or 1" }).transform((digit) => digit === "1");

const oneOf = <T extends string>(values: readonly T[]) =>
  z.string().pipe(z.enum(values, { error: `must be one of ${values.join(", ")}` }));

const MIN_TOKEN_LENGTH = 16;

/** Fits into a bearer header (RFC 6750, section 2.1) and is long enough not to be guessed. */
const bearerToken = accepted(
  (token) => token.length >= MIN_TOKEN_LENGTH && /^[A-Za-z0-9._~+/-]+=*$/.test(token),
  `must be at least ${MIN_TOKEN_LENGTH} characters of A-Z a-z 0-9 . _ ~ + / -`,
);

/** A comma-separated list without repetitions, in the order given; with `emptyWord` that word is the empty list. */
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

/** An absolute URL of one of these schemes; credentials, query and fragment only where `anyPart`. */
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

/** All settings: `Config`, the checks, `--help`, the table of the documentation and the settings file are made from it. */
export const settingsSchema = z.object({
  port: setting("INLET_PORT", portNumber, {
    defaultText: "8080",
    description: "Port to listen on; 0 takes any free one and prints it.",
  }),
  host: setting("INLET_HOST", text, {
    defaultText: "127.0.0.1",
    description: "Address to listen on; the container image sets 0.0.0.0.",
  }),
  /** An absolute path. */
  dataDir: setting(
    "INLET_DATA_DIR",
    z.string().transform((path) => resolve(path)),
    {
      defaultText: "./data",
      description: "Folder of Inlet's own PostgreSQL, Redis and master key; one gateway at a time owns it.",
    },
  ),
  roles: setting("INLET_ROLES", listOf(oneOf(ROLES)), {
    defaultText: ROLES.join(","),
    description:
      "What this process does: any of api, hooks, sources, delivery. `hooks` alone serves hooks and health only.",
  }),
  baseUrl: optional("INLET_BASE_URL", baseUrl, {
    unsetMeans: "from host and port",
    description:
      "Public address of the management API, for what is printed and linked; /v1 is added if it is missing.",
  }),
  hooksUrl: optional("INLET_HOOKS_URL", baseUrl, {
    unsetMeans: "the base URL without /v1",
    description: "Public address in front of /hooks/{channelId}.",
  }),
  apiKey: optional("INLET_API_KEY", bearerToken, {
    description: `API key with all permissions in the default organization, for automation; at least ${MIN_TOKEN_LENGTH} characters. The database keeps it, hashed: it stays valid when it is set no longer.`,
    secret: true,
  }),
  oidcIssuer: optional("INLET_OIDC_ISSUER", webUrl, {
    description:
      "OpenID Connect issuer whose tokens are accepted, exactly as it names itself: its subject must be the identifier of an Identity with this provider in the organization that is called for.",
  }),
  oidcAudience: optional("INLET_OIDC_AUDIENCE", text, {
    description: "Audience that those tokens must name. Required with INLET_OIDC_ISSUER.",
  }),
  oidcOrganizationClaim: optional("INLET_OIDC_ORGANIZATION_CLAIM", text, {
    description:
      "Claim of those tokens that names, by its id, the organization that they are for. Without it, and without INLET_OIDC_ORGANIZATION, callers name it in `X-Organization-Id` or to `POST /auth/tokens`.",
  }),
  oidcOrganization: optional(
    "INLET_OIDC_ORGANIZATION",
    accepted((id) => isId("org", id), "must be the id of an organization (`org_…`)"),
    {
      description: "Id of the one organization that tokens of the issuer are for where no claim says which.",
    },
  ),
  oidcConsoleClientId: optional("INLET_OIDC_CONSOLE_CLIENT_ID", text, {
    description:
      "Public client of that issuer by which people sign in to the console (code flow with PKCE); its redirect address is that of this gateway with /console/callback.",
  }),
  apiRequestsPerMinute: setting("INLET_API_REQUESTS_PER_MINUTE", wholeNumber(1, 1_000_000_000), {
    defaultText: "600",
    description: "Requests to the management API that each API key has in a minute, over all gateways.",
  }),
  hookRequestsPerSecond: setting("INLET_HOOK_REQUESTS_PER_SECOND", wholeNumber(1, 1_000_000_000), {
    defaultText: "1000",
    description:
      "Items that the deliveries to the hooks of one organization bring in a second, in each gateway; a channel's deliveries too, for which it may set less.",
  }),
  sourceDeliveriesPerSecond: setting("INLET_SOURCE_DELIVERIES_PER_SECOND", wholeNumber(1, 1_000_000_000), {
    defaultText: "1000",
    description:
      "Items that the sources of one organization bring in a second to each process with the role `sources`: of frames of streams and pages of polls. What comes faster waits.",
  }),
  pollConcurrency: setting("INLET_POLL_CONCURRENCY", wholeNumber(1, 1_000), {
    defaultText: "50",
    description: "Polls that a process with the role `sources` has under way at once.",
  }),
  pollsPerOrigin: setting("INLET_POLLS_PER_ORIGIN", wholeNumber(1, 10_000), {
    defaultText: "10",
    description:
      "Polls of one server (scheme, host and port) that are under way at once, over all gateways; others wait in line.",
  }),
  pollsPerOrganization: setting("INLET_POLLS_PER_ORGANIZATION", wholeNumber(1, 10_000), {
    defaultText: "50",
    description:
      "Polls of one organization that are under way at once, over all gateways; others wait in line.",
  }),
  sipProviders: setting("INLET_SIP_PROVIDERS", sipProviders, {
    defaultText: "sip_provider_1,sip_provider_2,sip_provider_3",
    description:
      "Names of the three telephony carriers that SIP trunks and phone numbers can be of, in lower case, separated by commas.",
  }),
  masterKey: optional("INLET_MASTER_KEY", masterKey, {
    unsetMeans: "made in the data directory",
    description: "Key that seals stored secrets: 32 bytes, base64 or hex. Required with DATABASE_URL.",
    secret: true,
  }),
  newMasterKey: optional("INLET_NEW_MASTER_KEY", masterKey, {
    unsetMeans: "made in the data directory",
    description:
      "Key that --rotate-master-key puts in the place of INLET_MASTER_KEY. Gateways that have both set go on through the change; others must be restarted after it.",
    secret: true,
  }),
  topicMebibytesPerOrganization: optional(
    "INLET_TOPIC_MEBIBYTES_PER_ORGANIZATION",
    wholeNumber(1, 1_000_000_000),
    {
      unsetMeans: "2048, or a quarter of Redis' `maxmemory` where that is less",
      description:
        "MiB that the topics of one organization may hold, the first organization aside: over it what all groups have acknowledged goes first, then its hooks get 429 and its sources wait.",
    },
  ),
  rowsPerResource: setting("INLET_ROWS_PER_RESOURCE", wholeNumber(1, 1_000_000_000), {
    defaultText: "100000",
    description: "Rows of each resource that one organization may have, the first organization aside.",
  }),
  auditRetentionDays: setting("INLET_AUDIT_RETENTION_DAYS", wholeNumber(1, 36_500), {
    defaultText: "365",
    description: "Days for which the audit is kept.",
  }),
  trustProxy: setting("INLET_TRUST_PROXY", listOf(network, "none"), {
    defaultText: "none",
    description:
      "Networks of proxies whose X-Forwarded-For is believed, as a comma-separated list: rate limits and log lines go by the client's address.",
  }),
  allowNetworks: setting("INLET_ALLOW_NETWORKS", listOf(network, "none"), {
    defaultText: "none",
    description:
      "Networks that outbound calls (sources, OAuth) may reach though they are not public, as a comma-separated list.",
  }),
  logLevel: setting("INLET_LOG_LEVEL", oneOf(LOG_LEVELS), {
    defaultText: "info",
    description: `Least level that is logged: ${LOG_LEVELS.join(", ")}.`,
  }),
  drainDelaySeconds: optional("INLET_DRAIN_DELAY_SECONDS", wholeNumber(0, 3_600), {
    unsetMeans: "5; 0 at a terminal",
    description:
      "How long a gateway that is told to stop goes on serving once /readyz says so: what asks /readyz more often sends it nothing by then.",
  }),
  durability: setting("INLET_DURABILITY", oneOf(DURABILITIES), {
    defaultText: "none",
    description:
      "What an answer of 200 must mean, checked at start: none, process (append-only file), fsync, replica (fsync and one replica).",
  }),
  durabilityAsserted: setting("INLET_DURABILITY_ASSERTED", flag, {
    defaultText: "0",
    description: "1 takes your word for it where Redis does not let its settings be read.",
  }),
  metricsToken: optional("INLET_METRICS_TOKEN", bearerToken, {
    description: `Bearer token that /metrics needs; at least ${MIN_TOKEN_LENGTH} characters. Without one, /metrics is not on the gateway's own port.`,
    secret: true,
  }),
  metricsListen: optional("INLET_METRICS_LISTEN", hostAndPort, {
    description:
      "Address for /metrics alone, without a token, as host:port (127.0.0.1:9464): for a network that only Prometheus reaches.",
  }),
  metricsChannels: setting("INLET_METRICS_CHANNELS", wholeNumber(0, 1_000), {
    defaultText: "100",
    description:
      "How many of the busiest channels, and of subscriptions and organizations, /metrics shows one by one; the rest are one.",
  }),
  databaseUrl: optional("DATABASE_URL", url(["postgresql:", "postgres:"], { anyPart: true }), {
    unsetMeans: "its own PostgreSQL",
    description: "PostgreSQL to use.",
    secret: true,
  }),
  redisUrls: setting("REDIS_URL", listOf(url(["redis:", "rediss:", "unix:"], { anyPart: true }), "none"), {
    defaultText: "none",
    unsetMeans: "its own redis-server",
    description: "Redis to use; a comma-separated list names nodes of one Cluster.",
    secret: true,
  }),
});

export type Config = Readonly<z.output<typeof settingsSchema>>;

/** In the order of the schema; `key` is the setting's name in `Config`. */
export const SETTING_LIST: readonly (SettingInfo & { readonly key: string })[] = Object.entries(
  settingsSchema.shape,
).flatMap(([key, schema]) => {
  const info = infos.get(schema);
  return info ? [{ key, ...info }] : [];
});
