import type { RedisBus } from "../bus/connection/redis.ts";
import type { HealthCheck } from "../http/health.ts";
import type { MasterKeyWatch } from "./master-keys.ts";
import type { Sources } from "./sources.ts";
import type { Stores } from "./stores.ts";

/** After this long without news of changes the promise "in force within two seconds" is off, and is said to be. */
const PROMISE_MS = 2_000;
/** After this long cached channels are no longer served. */
const MAX_STALENESS_MS = 600_000;

/** What `/readyz` asks: is anything in the way of publishing, and how durable is what is published. */
export function createHealthChecks(deps: {
  readonly stores: Pick<Stores, "problems">;
  readonly redis: Pick<RedisBus, "state">;
  /** Undefined where this worker runs none. */
  readonly sources: Pick<Sources, "shards" | "workers"> | undefined;
  readonly masterKey: Pick<MasterKeyWatch, "problem">;
  readonly feedStalenessMs: () => number;
  readonly stopping: AbortSignal;
}): readonly HealthCheck[] {
  const { stores, redis, masterKey, sources, feedStalenessMs, stopping } = deps;
  return [
    {
      name: "running",
      check: () => (stopping.aborted ? { ok: false, reason: "is stopping" } : { ok: true }),
    },
    {
      name: "servers",
      check() {
        const problems = stores.problems();
        return problems.length === 0 ? { ok: true } : { ok: false, reason: problems.join("; ") };
      },
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
      check() {
        const reason = masterKey.problem();
        return reason === undefined ? { ok: true } : { ok: false, reason };
      },
    },
    {
      name: "changes",
      check() {
        const blindSeconds = Math.floor(feedStalenessMs() / 1000);
        if (feedStalenessMs() > MAX_STALENESS_MS)
          return { ok: false, reason: `could not be read for ${blindSeconds} s` };
        // Known channels can publish still: nothing is gained by taking this gateway out.
        return {
          ok: true,
          facts: { inForceWithinTwoSeconds: feedStalenessMs() <= PROMISE_MS + 1_000, blindSeconds },
        };
      },
    },
    ...(sources === undefined ? [] : [sourcesCheck(sources)]),
  ];
}

/** Whoever has no shards may still take deliveries: others run the sources. */
const sourcesCheck = (sources: Pick<Sources, "shards" | "workers">): HealthCheck => ({
  name: "sources",
  check: () => ({ ok: true, facts: { shards: sources.shards().size, workers: sources.workers() } }),
});
