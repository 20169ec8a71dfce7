import packageJson from "../../package.json" with { type: "json" };
import type { RedisBus } from "../bus/connection/redis.ts";
import type { OverLimit } from "../bus/limits/over-limit.ts";
import { type ChangeFeed, MAX_STALENESS_MS } from "../data/changes.ts";
import type { CheckResult, HealthCheck } from "../http/health.ts";
import { findDiskWarning } from "../lib/servers/disk-space.ts";
import type { Backlog } from "../maintenance/backlogs.ts";
import type { Housekeeper } from "../maintenance/housekeeper.ts";
import type { StorageUsage } from "../maintenance/storage-usage.ts";
import type { Metrics } from "../metrics.ts";
import type { Foundation } from "./foundation.ts";
import type { MasterKeyWatch } from "./master-keys.ts";
import type { Sources } from "./sources.ts";
import type { StoreWarnings } from "./store-warnings.ts";
import type { Stores } from "./stores.ts";

/** Maximum time until a configuration change takes effect, as documented. `/readyz` reports when this may take longer. */
const PROMISE_MS = 2_000;

export function createHealthChecks(deps: {
  readonly stores: Pick<Stores, "problems" | "diskSpace">;
  readonly redis: Pick<RedisBus, "state">;
  /** Sources that this gateway runs. `undefined` if it runs none. */
  readonly sources: Pick<Sources, "shards" | "workers"> | undefined;
  readonly masterKey: Pick<MasterKeyWatch, "problem">;
  readonly changes: Pick<ChangeFeed, "stalenessMs">;
  readonly warnings: Pick<StoreWarnings, "redis" | "database">;
  readonly stopping: AbortSignal;
}): readonly HealthCheck[] {
  const { stores, redis, masterKey, sources, changes, warnings, stopping } = deps;
  return [
    {
      name: "running",
      check: () => okUnless(stopping.aborted && "is stopping"),
    },
    {
      name: "servers",
      check() {
        const space = stores.diskSpace();
        const warning = space && findDiskWarning(space);
        const problems = stores.problems();
        if (problems.length === 0) return { ok: true, ...(warning && { warnings: [warning] }) };
        return { ok: false, reason: [...problems, ...(warning ? [warning] : [])].join("; ") };
      },
    },
    {
      name: "redis",
      check() {
        const { ready, problems, ...facts } = redis.state();
        return ready
          ? { ok: true, warnings: warnings.redis(), facts: { ...facts, problems } }
          : { ok: false, reason: problems.join("; "), facts };
      },
    },
    {
      name: "database",
      // The check always succeeds, because known channels continue to accept deliveries.
      check: () => ({ ok: true, warnings: warnings.database() }),
    },
    {
      name: "masterKey",
      check: () => okUnless(masterKey.problem()),
    },
    {
      name: "changes",
      check() {
        const stalenessMs = changes.stalenessMs();
        const stalenessSeconds = Math.floor(stalenessMs / 1000);
        if (stalenessMs > MAX_STALENESS_MS)
          return { ok: false, reason: `the change feed has been unreadable for ${stalenessSeconds} s` };
        // The check succeeds even if configuration changes are late, because this gateway can still publish events for the channels that it
        // knows.
        const activeWithinTwoSeconds = stalenessMs <= PROMISE_MS + 1_000;
        return { ok: true, facts: { activeWithinTwoSeconds, stalenessSeconds } };
      },
    },
    ...(sources === undefined ? [] : [sourcesCheck(sources)]),
  ];
}

const okUnless = (reason: string | false | undefined): CheckResult =>
  reason ? { ok: false, reason } : { ok: true };

/**
 * Creates a check that always succeeds. A gateway that runs no sources can still receive deliveries while other gateways run the sources.
 */
const sourcesCheck = (sources: Pick<Sources, "shards" | "workers">): HealthCheck => ({
  name: "sources",
  check: () => ({ ok: true, facts: { shards: sources.shards().size, workers: sources.workers() } }),
});

export function observeGateway({
  metrics,
  changes,
  housekeeper,
  overLimit,
  redis,
}: Pick<Foundation, "metrics" | "changes" | "redis"> & {
  readonly housekeeper: Pick<Housekeeper, "atRisk" | "backlogs" | "topicUsage" | "quarantineUsage">;
  readonly overLimit: Pick<OverLimit, "count">;
}): void {
  metrics.observe(
    "inlet_change_feed_staleness_seconds",
    "Time since the change feed was last read",
    () => changes.stalenessMs() / 1000,
  );
  metrics.observe(
    "inlet_subscriptions_retention_at_risk",
    "Subscriptions that will soon lose unread events to retention; 0 unless this gateway holds the housekeeper lease",
    housekeeper.atRisk,
  );
  metrics.observe(
    "inlet_organizations_over_limit",
    "Organizations over their topic storage limit, or with too large a share of a nearly full Redis",
    overLimit.count,
  );
  metrics.observe(
    "inlet_redis_memory_used_ratio",
    "Fraction of Redis maxmemory in use; 0 if Redis has no memory limit",
    () => redis.state().memoryUsedFraction ?? 0,
  );
  metrics.observe(
    "inlet_redis_ready",
    "1 while Redis accepts events, otherwise 0",
    () => (redis.state().ready ? 1 : 0),
    "min",
  );
  const { version } = packageJson;
  metrics.observeEach(
    "inlet_build_info",
    "Always 1, with the versions as labels",
    ["version", "node"],
    () => [{ labels: { version, node: process.versions.node }, value: 1 }],
  );
  observeBacklogs(metrics, housekeeper.backlogs);
  observeStorage(metrics, housekeeper);
}

/** Registers metrics of unread events per subscription. Only one gateway has values, so that each metric is exported once. */
function observeBacklogs(metrics: Metrics, backlogs: () => readonly Backlog[]): void {
  const observe = (name: string, help: string, of: (backlog: Backlog) => number): void =>
    metrics.observeEach(name, help, ["app", "subscription"], () =>
      backlogs().map((one) => ({
        labels: { app: one.app, subscription: one.subscription },
        value: of(one),
      })),
    );
  observe(
    "inlet_subscription_lag_entries",
    "Entries not yet delivered to the consumer groups of a subscription",
    ({ lag }) => lag,
  );
  observe(
    "inlet_subscription_lag_seconds",
    "Age of the oldest entry not yet delivered to the subscription",
    ({ lagSeconds }) => lagSeconds,
  );
  observe(
    "inlet_subscription_unhandled_seconds",
    "Age of the oldest entry that a subscription has not received or not acknowledged",
    ({ unhandledSeconds }) => unhandledSeconds,
  );
  observe(
    "inlet_subscription_pending_entries",
    "Entries delivered to the subscription but not acknowledged",
    ({ pending }) => pending,
  );
  observe(
    "inlet_subscription_dead_letters",
    "Dead letters of the handler and readers of a subscription",
    ({ deadLetters }) => deadLetters,
  );
}

function observeStorage(
  metrics: Metrics,
  { topicUsage, quarantineUsage }: Pick<Housekeeper, "topicUsage" | "quarantineUsage">,
): void {
  const observe = (
    name: string,
    help: string,
    read: () => readonly StorageUsage[],
    of: "bytes" | "limit",
  ): void =>
    metrics.observeEach(name, help, ["organization"], () =>
      read().flatMap(({ organization, [of]: value }) =>
        value === undefined ? [] : [{ labels: { organization }, value }],
      ),
    );
  observe("inlet_organization_topic_bytes", "Size of an organization's topics in bytes", topicUsage, "bytes");
  observe(
    "inlet_organization_topic_limit_bytes",
    "Maximum size of an organization's topics in bytes",
    topicUsage,
    "limit",
  );
  observe(
    "inlet_organization_quarantine_bytes",
    "Size of an organization's quarantine in bytes",
    quarantineUsage,
    "bytes",
  );
  observe(
    "inlet_organization_quarantine_limit_bytes",
    "Maximum size of an organization's quarantine in bytes",
    quarantineUsage,
    "limit",
  );
}
