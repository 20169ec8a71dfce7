import type { RedisBus } from "../../../../src/bus/connection/redis.ts";
import { openJobQueue } from "../../../../src/bus/jobs/job-queue.ts";
import { createSlots } from "../../../../src/bus/limits/slots.ts";
import { createSourcePositions } from "../../../../src/bus/sources/source-positions.ts";
import { createSourceStates } from "../../../../src/bus/sources/source-states.ts";
import type { SourceChannel } from "../../../../src/channels/pull/open-run.ts";
import type { PollJob, PollsDeps } from "../../../../src/channels/pull/polls/poll-target.ts";
import type { Polls } from "../../../../src/channels/pull/polls/polls.ts";
import { startPolls } from "../../../../src/channels/pull/polls/polls.ts";
import type { DesiredSource } from "../../../../src/channels/pull/source-list.ts";
import { createSourcePace } from "../../../../src/channels/pull/source-pace.ts";
import { createSourceRuns } from "../../../../src/channels/pull/source-runs.ts";
import type { PolledSource, PollSchedule, SourceEnd, SourceRun } from "../../../../src/channels/source.ts";
import { createLog, type Log } from "../../../../src/log.ts";
import { createMetrics, type Metrics } from "../../../../src/metrics.ts";

/** The config of a minimal polled source. */
export interface TinyConfig {
  readonly schedule: PollSchedule;
  readonly origin: string;
}

export const silent = createLog({ level: "silent" });
/** Longer than any test runs, so a timer of this length never fires in a test. */
export const NEVER_MS = 3_600_000;
const everyWeek: PollSchedule = { everySeconds: 7 * 86_400, jitter: 0 };
export const EVERY_MS = 400;
export const often: PollSchedule = { everySeconds: EVERY_MS / 1_000, jitter: 0 };

/** Creates a source as the supervisor passes it on. */
export function wanted(
  channelNumber: number,
  options: Partial<TinyConfig & { version: number; organizationId: string; appId: string }> = {},
) {
  const { schedule = everyWeek, origin = `https://${channelNumber}.example`, version = 1 } = options;
  const { organizationId = "org_1", appId = "app_1" } = options;
  const config: TinyConfig = { schedule, origin };
  const identity = { number: channelNumber, uid: "tiny", kind: "polling", appId, organizationId };
  return { identity, version, config } satisfies DesiredSource;
}

export type Poll = (run: SourceRun) => Promise<SourceEnd>;

export interface PollsWorker extends AsyncDisposable {
  readonly engine: Polls;
  /** The channels that may run, in addition to being synced. `undefined` allows all. */
  active: ReadonlySet<number> | undefined;
  readonly metrics: Metrics;
}

/** Starts a worker with the real queue, slots, positions and runs. Only the polled source is minimal, and no events are published. */
export function startPollsWorker(
  redis: RedisBus,
  poll: Poll,
  options: Partial<PollsDeps> & {
    readonly queueName?: string;
    readonly heldMs?: number;
    readonly log?: Log;
    readonly aheadMs?: () => number;
  } = {},
): PollsWorker {
  const { queueName = "polls", heldMs = NEVER_MS, log = silent, aheadMs = () => 0, ...deps } = options;
  const positions = createSourcePositions({ redis });
  const states = createSourceStates({ redis });
  const queue = openJobQueue<PollJob>({ redis, name: queueName, aheadMs, log });
  const metrics = createMetrics();
  const polled: PolledSource = {
    schedule: (config) => (config as TinyConfig).schedule,
    origin: (config) => (config as TinyConfig).origin,
    poll,
    dryRun: () => Promise.reject(new Error("this worker has no dry runs")),
  };
  const runs = createSourceRuns<SourceChannel>({
    findSource: async (number) =>
      worker.active?.has(number) === false
        ? undefined
        : { channel: channelOf(number), topics: [], hasRunBefore: false },
    recordFirstRun: async () => {},
    credentialsOf: () => {
      throw new Error("this worker has no credentials");
    },
    positions,
    states,
    pace: createSourcePace({ deliveriesPerSecondOf: () => undefined }),
    gather: () => [],
    move: () => Promise.reject(new Error("this worker moves no cursor")),
    setState: async () => true,
    isPipelined: true,
    clock: deps.clock ?? Date.now,
    observe: () => {},
  });
  const engine = startPolls({
    queue,
    slots: createSlots({ redis, heldMs }),
    runs,
    runtimes: new Map([["polling", { polled }]]),
    owner: "worker",
    concurrency: 50,
    limits: { perOrigin: 1_000, perOrganization: 1_000 },
    clock: Date.now,
    log,
    metrics,
    ...deps,
    timing: { wakeSpacingMs: 0, ...deps.timing },
  });
  const worker: PollsWorker = {
    engine,
    active: undefined,
    metrics,
    async [Symbol.asyncDispose]() {
      await engine[Symbol.asyncDispose]();
      await queue[Symbol.asyncDispose]();
    },
  };
  return worker;
}

function channelOf(number: number): SourceChannel {
  return {
    identity: { number, uid: "in", kind: "polling", appId: "app_1", organizationId: "org_1" },
    state: "active",
    limits: { maxBodyBytes: 1, maxDepth: 1 },
    kindConfig: {},
    acceptsContentType: () => true,
    methods: [],
    answer: "outcome" as const,
    version: 1,
    connectionId: null,
  };
}
