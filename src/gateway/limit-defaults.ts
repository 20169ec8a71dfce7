import { QUARANTINE_LIMITS } from "../bus/quarantine/quarantine-record.ts";
import type { Config } from "../config/schema.ts";
import { LIMIT_NAMES, type LimitDefaults, type Limits } from "../data/accounts/limits.ts";
import { type DefaultTopicBytes, MOST_DEFAULT_BYTES } from "../data/accounts/organization-limits.ts";
import { DEFAULT_BODY_BYTES } from "../ingest/body/body-budget.ts";
import { DEFAULT_KEY_FETCHES } from "../verify/keys/key-cache.ts";

/** Default CPU time for compiling the schemas of an organization, in ms per minute. It is half of a CPU core. */
const SCHEMA_COMPILE_MS_PER_MINUTE = 30_000;
const MEBIBYTE = 1024 * 1024;
/** Divisor of Redis' memory limit: one organization's topics may use a quarter of the memory by default. */
const TOPICS_DIVISOR = 4;
const QUARANTINE_DIVISOR = 8;
/**
 * Divisor of Redis' memory limit: by default, the operator's own organization may use half of it for its quarantine. The quarantine needs a
 * limit, because unverified senders can fill it, and a full Redis rejects all events.
 */
const OPERATORS_QUARANTINE_DIVISOR = 2;

const UNLIMITED = Object.fromEntries(LIMIT_NAMES.map((name) => [name, undefined])) as Limits;

/**
 * Returns the default limits of organizations, derived from Redis' memory limit. No single organization can fill Redis.
 *
 * @param maxMemoryBytes memory limit of Redis, unlimited if omitted
 */
export function computeLimitDefaults(
  config: Pick<
    Config,
    | "topicMebibytesPerOrganization"
    | "hookRequestsPerSecond"
    | "sourceDeliveriesPerSecond"
    | "rowsPerResource"
  >,
  maxMemoryBytes = Number.POSITIVE_INFINITY,
): LimitDefaults & { readonly topicBytes: DefaultTopicBytes } {
  const { topicMebibytesPerOrganization: given } = config;
  const topicBytes: DefaultTopicBytes =
    given === undefined
      ? { bytes: Math.min(MOST_DEFAULT_BYTES, Math.floor(maxMemoryBytes / TOPICS_DIVISOR)), isDerived: true }
      : { bytes: given * MEBIBYTE, isDerived: false };
  const { organizationBytes } = QUARANTINE_LIMITS;
  const operatorsQuarantine = Math.floor(maxMemoryBytes / OPERATORS_QUARANTINE_DIVISOR);
  return {
    topicBytes,
    operators: {
      ...UNLIMITED,
      quarantineBytes: Number.isFinite(operatorsQuarantine) ? operatorsQuarantine : undefined,
    },
    others: {
      topicBytes: topicBytes.bytes,
      quarantineBytes: Math.min(organizationBytes, Math.floor(maxMemoryBytes / QUARANTINE_DIVISOR)),
      hookRequestsPerSecond: config.hookRequestsPerSecond,
      sourceDeliveriesPerSecond: config.sourceDeliveriesPerSecond,
      keyFetches: DEFAULT_KEY_FETCHES,
      bodyBytes: DEFAULT_BODY_BYTES,
      schemaCompileMsPerMinute: SCHEMA_COMPILE_MS_PER_MINUTE,
      rowsPerResource: config.rowsPerResource,
    },
  };
}
