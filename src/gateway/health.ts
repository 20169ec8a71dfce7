import packageJson from "../../package.json" with { type: "json" };
import type { RedisBus } from "../bus/connection/redis.ts";
import type { OverLimit } from "../bus/limits/over-limit.ts";
import { type ChangeFeed, MAX_STALENESS_MS } from "../data/changes.ts";
import type { Backlog } from "../delivery/backlogs.ts";
import type { Housekeeper } from "../delivery/housekeeper.ts";
import type { StorageUsage } from "../delivery/storage-usage.ts";
import type { CheckResult, HealthCheck } from "../http/health.ts";
import type { Metrics } from "../metrics.ts";
import type { Foundation } from "./foundation.ts";
import type { MasterKeyWatch } from "./master-keys.ts";
import type { Sources } from "./sources.ts";
import type { Stores } from "./stores.ts";

/** After this long without news of changes the promise "in force within two seconds" is off, and is said to be. */
const PROMISE_MS = 2_000;

/** The checks of `/readyz`: is anything in the way of publishing, and how durable is what is published. */
export function createHealthChecks(deps: {
  readonly stores: Pick<Stores, "problems">;
  readonly redis: Pick<RedisBus, "state">;
  /** Undefined where this worker runs none. */
  readonly sources: Pick<Sources, "shards" | "workers"> | undefined;
  readonly masterKey: Pick<MasterKeyWatch, "problem">;
  readonly changes: Pick<ChangeFeed, "stalenessMs">;
  readonly stopping: AbortSignal;
}): readonly HealthCheck[] {
  const { stores, redis, masterKey, sources, changes, stopping } = deps;
  return [
    {
      name: "running",
      check: () => okUnless(stopping.aborted && "is stopping"),
    },
    {
      name: "servers",
      check: () => okUnless(stores.problems().join("; ")),
    },
    {
      name: "redis",
      check() {
        const { ready, problems, ...facts } = redis.state();
        return ready
          ? { ok: true, facts: { ...facts, problems } }
          : { ok: false, reason: problems.join("; "), facts };
      },
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
          return { ok: false, reason: `could not be read for ${stalenessSeconds} s` };
        // Known channels can publish still: nothing is gained by taking this gateway out.
        const inForceWithinTwoSeconds = stalenessMs <= PROMISE_MS + 1_000;
        return { ok: true, facts: { inForceWithinTwoSeconds, stalenessSeconds } };
      },
    },
    ...(sources === undefined ? [] : [sourcesCheck(sources)]),
  ];
}

const okUnless = (reason: string | false | undefined): CheckResult =>
  reason ? { ok: false, reason } : { ok: true };

/** A gateway without shards may still take deliveries: others run the sources. */
const sourcesCheck = (sources: Pick<Sources, "shards" | "workers">): HealthCheck => ({
  name: "sources",
  check: () => ({ ok: true, facts: { shards: sources.shards().size, workers: sources.workers() } }),
});

/** Figures of the gateway as a whole, for `/metrics`. */
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
    "Subscriptions that are about to lose unread events to retention; 0 on gateways that have not the turn to watch",
    housekeeper.atRisk,
  );
  metrics.observe(
    "inlet_organizations_over_limit",
    "Organizations whose topics hold more than they may, or too much of a Redis that is nearly full",
    overLimit.count,
  );
  metrics.observe(
    "inlet_redis_memory_used_ratio",
    "Of maxmemory; 0 where it is not limited",
    () => redis.state().memoryUsedFraction ?? 0,
  );
  metrics.observe("inlet_redis_ready", "1 while Redis takes what is published, else 0", () =>
    redis.state().ready ? 1 : 0,
  );
  const { version } = packageJson;
  metrics.observeEach("inlet_build_info", "Always 1", ["version", "node"], () => [
    { labels: { version, node: process.versions.node }, value: 1 },
  ]);
  observeBacklogs(metrics, housekeeper.backlogs);
  observeStorage(metrics, housekeeper);
}

/** Only the gateway that has the turn to look knows any. */
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
    "Entries that the group of a subscription was not given yet",
    ({ lag }) => lag,
  );
  observe("inlet_subscription_lag_seconds", "The age of the oldest of them", ({ lagSeconds }) => lagSeconds);
  observe(
    "inlet_subscription_unhandled_seconds",
    "The age of the oldest entry that a subscription was not given, or has not acknowledged",
    ({ unhandledSeconds }) => unhandledSeconds,
  );
  observe(
    "inlet_subscription_pending_entries",
    "Entries that were given and not acknowledged",
    ({ pending }) => pending,
  );
  observe(
    "inlet_subscription_dead_letters",
    "Dead letters of a subscription's handler and readers",
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
  observe("inlet_organization_topic_bytes", "What the topics of an organization hold", topicUsage, "bytes");
  observe("inlet_organization_topic_limit_bytes", "What they may hold", topicUsage, "limit");
  observe(
    "inlet_organization_quarantine_bytes",
    "What the quarantine of an organization holds",
    quarantineUsage,
    "bytes",
  );
  observe("inlet_organization_quarantine_limit_bytes", "What it may hold", quarantineUsage, "limit");
}
