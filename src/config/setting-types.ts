import { availableParallelism } from "node:os";
import { z } from "zod";
import { NO_NETWORK, parseNetwork } from "../lib/addresses/networks.ts";
import { parseMasterKey } from "../lib/secrets/master-key.ts";

/** Parses the text of a setting. Error messages never quote the text, because it may be secret. */
export type SettingType<T> = z.ZodType<T, string>;

export const text: SettingType<string> = z.string();

export const accepted = (isAccepted: (text: string) => boolean, problem: string) =>
  z.string().refine(isAccepted, { error: problem });

/** A TCP port. 0 lets the system choose one. */
export const portNumber = z
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
export const hostAndPort = z.string().transform((text, context) => {
  const [, host = "", digits = ""] = /^(\[[0-9A-Fa-f:.]+\]|[^\s:/[\]]+):(\d{1,5})$/.exec(text) ?? [];
  const port = Number(digits);
  if (host !== "" && port <= 65_535) return { host: host.replace(/^\[|\]$/g, ""), port };
  context.addIssue("must be host:port, for example 127.0.0.1:9464");
  return z.NEVER;
});

export const wholeNumber = (min: number, max: number): SettingType<number> =>
  accepted(
    (digits) => /^\d{1,10}$/.test(digits) && Number(digits) >= min && Number(digits) <= max,
    `must be an integer from ${min} to ${max}`,
  ).transform(Number);

/** The connections of this many processes fit into the `max_connections` of the embedded PostgreSQL. */
export const MAX_PROCESSES = 32;

/** A number of processes. `auto` stands for one per core that this process may use. */
export const processCount: SettingType<number> = accepted(
  (text) => text === "auto" || (/^\d{1,2}$/.test(text) && Number(text) >= 1 && Number(text) <= MAX_PROCESSES),
  `must be an integer from 1 to ${MAX_PROCESSES}, or auto`,
).transform((text) => (text === "auto" ? Math.min(MAX_PROCESSES, availableParallelism()) : Number(text)));

/** A decimal number from 0 to 1. */
export const ratio: SettingType<number> = accepted(
  (digits) => /^(?:\d+\.?\d*|\.\d+)$/.test(digits) && Number(digits) <= 1,
  "must be a number from 0 to 1, such as 0.01",
).transform(Number);

/** Comma-separated `name=value` pairs with percent-encoded values, as OpenTelemetry writes them. May be empty. */
export const keyValues = z.string().transform((list, context): Readonly<Record<string, string>> => {
  const values: Record<string, string> = {};
  for (const pair of list.split(",").filter((part) => part.trim() !== "")) {
    const [, name, encoded = ""] = /^\s*([\w!#$%&'*+.^`|~-]+)\s*=\s*(.*?)\s*$/.exec(pair) ?? [];
    const value = decodePercent(encoded);
    if (name === undefined || value === undefined) {
      context.addIssue("must be comma-separated name=value pairs with percent-encoded values");
      return z.NEVER;
    }
    values[name] = value;
  }
  return values;
});

function decodePercent(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

export const flag = z.enum(["0", "1"], { error: "must be 0 or 1" }).transform((digit) => digit === "1");

export const onOff = z.enum(["on", "off"], { error: "must be on or off" }).transform((word) => word === "on");

export const oneOf = <T extends string>(values: readonly T[]) =>
  z.string().pipe(z.enum(values, { error: `must be one of ${values.join(", ")}` }));

export const MIN_TOKEN_LENGTH = 16;

/** A bearer token (RFC 6750, section 2.1) that is long enough to be unguessable. */
export const bearerToken = accepted(
  (token) => token.length >= MIN_TOKEN_LENGTH && /^[A-Za-z0-9._~+/-]+=*$/.test(token),
  `must be at least ${MIN_TOKEN_LENGTH} characters of A-Z a-z 0-9 . _ ~ + / -`,
);

/** A comma-separated list without duplicates. If `emptyWord` is given, it stands for an empty list. */
export const listOf = <T>(type: SettingType<T>, emptyWord?: string): SettingType<readonly T[]> =>
  z
    .string()
    .transform((list) => (list === emptyWord ? [] : list.split(",").map((part) => part.trim())))
    .refine((parts) => !parts.includes(""), { error: "must be a comma-separated list without empty parts" })
    .pipe(z.array(type))
    .transform((values) => [...new Set(values)]);

const SIP_PROVIDERS = 3;

export const sipProviders = listOf(
  accepted((name) => /^[a-z0-9_.-]{1,64}$/.test(name), "must be 1 to 64 characters of a-z 0-9 _ . -"),
).refine(({ length }) => length === SIP_PROVIDERS, { error: `must be ${SIP_PROVIDERS} different names` });

export const network = z.string().transform((text, context) => {
  const parsed = parseNetwork(text);
  if (parsed === undefined) context.addIssue(NO_NETWORK);
  return parsed ?? z.NEVER;
});

/** An absolute URL with one of these schemes. Credentials, a query or a fragment are rejected unless `anyPart` is true. */
export function url(schemes: readonly string[], { anyPart = false } = {}) {
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

export const webUrl = url(["https:", "http:"]);
export const baseUrl = webUrl.transform((text) => text.replace(/\/+$/, ""));

const SAMPLE_TRACE_ID = "0".repeat(32);

/** An absolute web URL with the placeholder `{traceId}` in its path, query or fragment. */
export const traceUrl = accepted((text) => {
  const parsed = URL.parse(text.replaceAll("{traceId}", SAMPLE_TRACE_ID));
  if (parsed === null || !["https:", "http:"].includes(parsed.protocol)) return false;
  const hasTraceId = parsed.href.slice(parsed.origin.length).includes(SAMPLE_TRACE_ID);
  return hasTraceId && !parsed.host.includes(SAMPLE_TRACE_ID) && !parsed.username && !parsed.password;
}, "must be a URL that begins with https:// or http://, without credentials, with {traceId} in its path, query or fragment");

export const masterKey = z.string().transform((text, context) => {
  const key = parseMasterKey(text);
  if (key) return key;
  context.addIssue("must be 32 bytes as base64 or as 64 hexadecimal digits (`openssl rand -base64 32`)");
  return z.NEVER;
});

/** Values of `OTEL_TRACES_SAMPLER`. */
export const SAMPLERS = (["parentbased_", ""] as const).flatMap((prefix) =>
  (["always_on", "always_off", "traceidratio"] as const).map((name) => `${prefix}${name}` as const),
);
