import type { RedisBus } from "../bus/connection/redis.ts";
import { createSlots } from "../bus/limits/slots.ts";
import { createShardLeases } from "../bus/sources/shard-leases.ts";
import { createSourcePositions } from "../bus/sources/source-positions.ts";
import { createSourceStates, SOURCE_STATES } from "../bus/sources/source-states.ts";
import type { ChannelRuntime } from "../channels/kind.ts";
import type { PollsTiming } from "../channels/pull/polls/poll-target.ts";
import { startPolls } from "../channels/pull/polls/polls.ts";
import { createSourcePace } from "../channels/pull/source-pace.ts";
import { createSourceRuns } from "../channels/pull/source-runs.ts";
import { type Supervisor, type SupervisorDeps, startSupervisor } from "../channels/pull/supervisor.ts";
import type { Config } from "../config/schema.ts";
import type { Limits } from "../data/accounts/limits.ts";
import { setFoundState } from "../data/channels/channel-states.ts";
import { recordFirstRun } from "../data/channels/sources.ts";
import { type ChannelKindName, channelFacts } from "../event/channel.ts";
import { createId } from "../lib/ids.ts";
import { ONLY_SHARE, type Share, takeShare } from "../limits/share.ts";
import type { Rates } from "../limits/shared-rates.ts";
import type { CredentialsOf } from "../net/credentials.ts";
import type { EventPath } from "./event-path.ts";
import type { Foundation } from "./foundation.ts";

/**
 * Maximum size of all writes of sources in flight on this machine, in bytes. It is lower than the limit of the Redis connection, so that
 * sources wait instead of failing.
 */
const MAX_BYTES_IN_FLIGHT = 16 * 1024 * 1024;

export type SourceBus = ReturnType<typeof createSourceBus>;

/** Opens the Redis data of sources: their cursors and states, and which worker runs them. */
export const createSourceBus = (redis: RedisBus) => ({
  positions: createSourcePositions({ redis }),
  states: createSourceStates({ redis }),
  leases: createShardLeases({ redis }),
});

export interface SourcesDeps
  extends Pick<Foundation, "db" | "redis" | "channelKinds" | "metrics" | "redisClock" | "log"> {
  readonly bus: SourceBus;
  readonly path: Pick<EventPath, "findSource" | "gatherFetched" | "movePosition" | "pollQueue">;
  readonly runtimes: ReadonlyMap<ChannelKindName, Pick<ChannelRuntime, "stream" | "polled">>;
  readonly credentialsOf: CredentialsOf;
  readonly config: Pick<Config, "pollConcurrency" | "pollsPerOrigin" | "pollsPerOrganization">;
  readonly limitsOf: (organizationId: string) => Pick<Limits, "sourceDeliveriesPerSecond">;
  readonly changes: SupervisorDeps["changes"];
  /** Aborts when the gateway begins to stop, so that other workers can take over its sources early. */
  readonly stopping: AbortSignal;
  readonly timing?: SourcesTiming | undefined;
  /** Rates that all processes of this machine share. */
  readonly rates?: Rates | undefined;
  /** The part of this process in the limits of a machine with several processes. */
  readonly share?: Share | undefined;
}

/** Timing of the workers that run sources. A worker without a heartbeat for `ttlMs` loses its sources to other workers. */
export type SourcesTiming = NonNullable<SupervisorDeps["timing"]> &
  Partial<Pick<PollsTiming, "wakeSpacingMs">>;

/** The sources that this worker runs. Disposal lets other workers take over. */
export type Sources = Pick<Supervisor, "shards" | "workers"> & AsyncDisposable;

export function startSources(deps: SourcesDeps): Sources {
  const { db, redis, bus, path, runtimes, credentialsOf, changes, metrics, redisClock, log, stopping } = deps;
  const { config, timing, share = ONLY_SHARE } = deps;
  const clock = redisClock.now;
  const worker = createId("wk", clock());
  const runs = createSourceRuns({
    ...bus,
    credentialsOf,
    clock,
    findSource: path.findSource,
    recordFirstRun: (number) => recordFirstRun(db, number),
    pace: createSourcePace({
      deliveriesPerSecondOf: (id) => deps.limitsOf(id).sourceDeliveriesPerSecond,
      rates: deps.rates,
    }),
    gather: path.gatherFetched,
    move: path.movePosition,
    setState: (channel, state) => setFoundState(db, channel, state, clock()),
    isPipelined: !redis.writes.isSlotted,
    maxBytesInFlight: takeShare(MAX_BYTES_IN_FLIGHT, share),
    observe(event) {
      const { identity } = event.channel;
      const facts = channelFacts(identity);
      switch (event.kind) {
        case "opened": {
          const isStream = runtimes.get(identity.kind)?.stream !== undefined;
          if (event.isAgain && isStream) metrics.sourceReconnects.inc({ kind: identity.kind });
          return;
        }
        case "ended":
          return metrics.sourceRuns.add(identity.kind, event.end.kind);
        case "cursorLost":
          return log.warn({ event: "source.cursor_lost", ...facts }, "Redis has lost the cursor of a source");
        case "refused":
          return metrics.rejectedSourceWrites.add(identity.kind, event.stale);
        case "missed": {
          const { target, kind: _, channel: __, ...found } = event;
          const line = {
            event: "source.deliveries_missed",
            ...facts,
            missedBy: target.identity.uid,
            ...found,
          };
          return log.warn(line, "a poll found deliveries that a webhook channel missed");
        }
        case "recovered":
          return log.info({ event: "source.recovered", ...facts }, "source has recovered from an error");
        case "stopped": {
          const { state, end } = event;
          const code = "code" in end ? end.code : undefined;
          const reason = "message" in end ? end.message : undefined;
          const line = { event: "source.stopped", ...facts, state, end: end.kind, code, reason };
          return log.warn(line, "source stopped, or is only retried occasionally");
        }
        default:
          return event satisfies never;
      }
    },
  });
  const slots = createSlots({ redis, ...(timing?.ttlMs !== undefined && { heldMs: timing.ttlMs }) });
  const polls = startPolls({
    concurrency: takeShare(config.pollConcurrency, share),
    limits: { perOrigin: config.pollsPerOrigin, perOrganization: config.pollsPerOrganization },
    queue: path.pollQueue,
    slots,
    runs,
    runtimes,
    owner: worker,
    clock,
    log,
    metrics,
    timing: timing?.wakeSpacingMs === undefined ? {} : { wakeSpacingMs: timing.wakeSpacingMs },
  });
  const supervisor = startSupervisor({
    db,
    changes,
    channelKinds: deps.channelKinds,
    runtimes,
    leases: bus.leases,
    runs,
    polls,
    worker,
    clock,
    log,
    ...(timing && { timing }),
  });
  const none = SOURCE_STATES.map((state) => [state, 0] as const);
  metrics.observeBy(
    "inlet_sources",
    "Sources in the shards of this worker, by state",
    "state",
    () => new Map<string, number>([...none, ...supervisor.countStates()]),
    "sum",
  );
  metrics.observe(
    "inlet_source_shards",
    "Source shards held by this worker",
    () => supervisor.shards().size,
    "sum",
  );
  metrics.observe(
    "inlet_source_workers",
    "Workers that run sources, as known to this worker",
    supervisor.workers,
  );

  let left: Promise<void> | undefined;
  const leave = (): Promise<void> => {
    left ??= Promise.all([supervisor[Symbol.asyncDispose](), polls[Symbol.asyncDispose]()]).then(() => {});
    return left;
  };
  const onStopping = (): void => {
    leave().catch((error: unknown) =>
      log.warn({ event: "source.handover_failed", err: error }, "sources could not be handed over"),
    );
  };
  stopping.addEventListener("abort", onStopping, { once: true });
  if (stopping.aborted) onStopping();
  return {
    shards: supervisor.shards,
    workers: supervisor.workers,
    async [Symbol.asyncDispose]() {
      stopping.removeEventListener("abort", onStopping);
      await leave();
    },
  };
}
