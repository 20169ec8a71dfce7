import { omitValues, type Values } from "../event/values.ts";
import { mayHoldChannelId, withoutChannelIds } from "../lib/secrets/channel-id.ts";
import { HIDDEN, redactTexts } from "../lib/secrets/redact.ts";

/**
 * Headers to remove from every delivery, because they contain credentials or the channel's secret URL. Proxies such as Kong, Envoy,
 * Traefik, nginx and IIS repeat the URL in them.
 */
export const CREDENTIAL_HEADERS = [
  "authorization",
  "proxy-authorization",
  "cookie",
  "x-api-key",
  "api-key",
  "x-auth-token",
  "x-access-token",
  "x-envoy-original-path",
  "x-forwarded-path",
  "x-forwarded-uri",
  "x-original-uri",
  "x-original-url",
  "x-rewrite-url",
];

/**
 * Removes values whose names are hidden, and channel URLs within all other values, because a proxy or `Referer` header may repeat
 * the URL. Usually returns the same object, because few requests contain such values.
 */
export function hideValues(values: Values, hidden: ReadonlySet<string>): Values {
  const kept = omitValues(values, hidden);
  // Avoid `for…in`, which V8 would re-optimize repeatedly. V8 collects no type feedback for its reads if all objects have the same
  // shape.
  for (const name of Object.keys(kept)) {
    const value = kept[name];
    if (value !== undefined && holdsChannelId(value))
      return Object.assign(Object.create(null), redactTexts({ ...kept }, withoutChannelIds));
  }
  return kept;
}

const holdsChannelId = (value: string | readonly string[]): boolean =>
  typeof value === "string" ? mayHoldChannelId(value) : value.some(mayHoldChannelId);

/** Headers that contain credentials although their names do not match `SECRET_NAME`. */
const SECRET_HEADERS: ReadonlySet<string> = new Set([
  "x-functions-key",
  "ocp-apim-subscription-key",
  "x-amz-cf-id-token",
  "x-ms-client-principal",
  "x-parse-rest-api-key",
  "x-rapidapi-key",
  "x-hub-verify",
]);

/** Matches names of headers and query parameters with credentials, such as `x-gitlab-token` and `client_secret`. */
const SECRET_NAME =
  /(?:^|[-_.])(?:\w*token|\w*secret\w*|passw(?:or)?d|passphrase|pwd|credentials?|auth(?:entication|orization)?|bearer|jwt|session(?:[-_]?id)?|cookie|(?:api|access|secret|private|subscription|master|auth|admin|account|shared)[-_]?key)(?:$|[-_.])/;

/**
 * Masks values whose names say that they are credentials, for display. Unlike the headers that verification reads, they stay in
 * deliveries, because definitions may read them.
 */
export function maskSecretValues(values: Values): Values {
  const isSecret = (name: string): boolean => {
    const lower = name.toLowerCase();
    return SECRET_HEADERS.has(lower) || SECRET_NAME.test(lower);
  };
  if (!Object.keys(values).some(isSecret)) return values;
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, isSecret(name) ? HIDDEN : value]),
  );
}
