import type { Topics } from "../bus/topics/topics.ts";
import { type CheckChannelDeps, checkChannel } from "../channels/check-channel.ts";
import { createSilenceWatch } from "../channels/pull/silence.ts";
import type { NewChannel } from "../data/channels/channels.ts";
import { PROBLEM_EVENT_TYPES, PROBLEMS_CHANNEL } from "../event/problem.ts";
import type { Housekeeper } from "../maintenance/housekeeper.ts";
import { createChecks } from "../maintenance/problems/checks.ts";
import { createDriftWatch } from "../maintenance/problems/drift-watch.ts";
import { createIntakeWatch, type Held } from "../maintenance/problems/intake-watch.ts";
import { type ProblemTiming, startProblemWatch } from "../maintenance/problems/problem-watch.ts";
import type { EventPath } from "./event-path.ts";
import type { Foundation } from "./foundation.ts";
import type { SourceBus } from "./sources.ts";
import type { StoreWarnings } from "./store-warnings.ts";

export interface ProblemsDeps extends Foundation {
  readonly bus: Pick<SourceBus, "positions" | "states"> & {
    readonly topics: Topics;
  };
  readonly path: Pick<
    EventPath,
    "publish" | "quarantine" | "deliveryRecords" | "explain" | "findCompiledChannel"
  >;
  readonly checkDeps: CheckChannelDeps;
  readonly hooksUrl: string;
  readonly housekeeper: Pick<Housekeeper, "isHolder" | "topicHoldings" | "backlogsById">;
  readonly warnings: Pick<StoreWarnings, "durability">;
  readonly timing: Partial<ProblemTiming>;
}

const REMEMBERED_SECONDS = 604_800;

/** Starts the detection of problems and publishes them as events. Only one gateway at a time detects problems. */
export async function startProblems(deps: ProblemsDeps) {
  const { bus, path, housekeeper, channelKinds, metrics, redisClock } = deps;
  const silence = createSilenceWatch({ ...deps, topics: bus.topics, clock: redisClock.now });
  const pullKinds = [...channelKinds.values()].filter(({ addressed }) => !addressed).map(({ kind }) => kind);
  await using starting = new AsyncDisposableStack();
  const drift = starting.use(createDriftWatch({ ...deps, ...path }));
  const intakes = createIntakeWatch({ ...deps, ...path, clock: redisClock.now });
  const watch = starting.use(
    startProblemWatch({
      ...deps,
      publish: path.publish,
      channel: await problemsChannel(deps.checkDeps),
      dedupeWindowMs: REMEMBERED_SECONDS * 1_000,
      isHolder: housekeeper.isHolder,
      checks: createChecks({
        ...deps,
        ...bus,
        silence,
        drift,
        intakes,
        pullKinds,
        durabilityWarning: deps.warnings.durability,
        quarantine: path.quarantine,
        topicHoldings: housekeeper.topicHoldings,
        backlogsById: housekeeper.backlogsById,
        clock: redisClock.now,
      }),
    }),
  );
  metrics.observe(
    "inlet_channels_silent",
    "Channels without events for longer than their expectEverySeconds. Only the gateway that does the housekeeping counts them; all others report 0",
    () => (housekeeper.isHolder() ? silence.silent() : 0),
  );
  metrics.observeEach(
    "inlet_problems",
    "Open problems of all organizations; only on the gateway that holds the housekeeper lease",
    ["kind", "state"],
    () => watch.counts().map(({ kind, state, count }) => ({ labels: { kind, state }, value: count })),
  );
  metrics.observeBy(
    "inlet_problems_age_seconds",
    "Time since the last check for problems of each kind; only on the gateway that holds the housekeeper lease",
    "kind",
    watch.ages,
  );
  const observeHeld = (name: string, help: string, read: (held: Held) => number) =>
    metrics.observeBy(name, `${help}; only on the gateway that holds the housekeeper lease`, "reason", () =>
      housekeeper.isHolder()
        ? new Map([...intakes.held()].map(([reason, held]) => [reason, read(held)]))
        : new Map(),
    );
  observeHeld(
    "inlet_intake_held_deliveries",
    "Deliveries, or parts of them, that intakes hold",
    ({ count }) => count,
  );
  observeHeld(
    "inlet_intake_held_seconds",
    "Age of the oldest delivery that an intake holds",
    ({ oldestSeconds }) => oldestSeconds,
  );
  return starting.move();
}

/**
 * Returns the channel for problem events, which belongs to the system app. Its kind is `cloudevents`, because the events are CloudEvents.
 */
async function problemsChannel(deps: CheckChannelDeps): Promise<NewChannel> {
  const config = { dedupe: { windowSeconds: REMEMBERED_SECONDS } };
  const events = PROBLEM_EVENT_TYPES.map((type) => ({ type }));
  const checked = await checkChannel(deps, { kind: "cloudevents", config, events }, "");
  if (!checked.ok) throw new Error("the settings of the problems channel are invalid");
  return { ...checked.value, ...PROBLEMS_CHANNEL };
}
