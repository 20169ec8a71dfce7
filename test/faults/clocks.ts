import { join } from "node:path";
import { type GatewayProcess, startGatewayProcess } from "../support/gateway-process.ts";
import { PollUpstream } from "../support/poll-upstream.ts";
import { type SharedStores, startSharedStores } from "../support/stores.ts";
import { CEILING_MS, until } from "../support/until.ts";
import type { Rig } from "./rig.ts";

const HOUR_MS = 3_600_000;
const CLOCKS = { right: 0, ahead: 2 * HOUR_MS, behind: -2 * HOUR_MS } as const;
type Clock = keyof typeof CLOCKS;

/** Clocks of the workers that run in each shift. A worker in two consecutive shifts keeps running between them. */
const SHIFTS: readonly (readonly Clock[])[] = [
  ["right"],
  ["right", "ahead"],
  ["right"],
  ["right", "behind"],
  ["ahead"],
  ["right"],
  ["behind"],
  ["right"],
];
const SOURCES = 6;
/** Minimum poll interval of a channel. */
const INTERVAL_SECONDS = 5;
/** Allows for a lease, an interval and a slow machine, but is far below the clock error of hours. */
const MAX_WAIT_MS = CEILING_MS / 2;

/**
 * Workers whose clocks are hours ahead or behind join, poll and leave. Within a minute the remaining workers must poll every source,
 * without losing or duplicating events.
 */
export const clocks: Rig = async ({ rounds }) => {
  await using stack = new AsyncDisposableStack();
  const stores = stack.use(await startSharedStores());
  const upstreams = await Promise.all(Array.from({ length: SOURCES }, () => PollUpstream.start()));
  for (const upstream of upstreams) {
    stack.use(upstream);
    upstream.clear({ by: "seq", isExclusive: true });
  }
  const workers = new Map<Clock, GatewayProcess>();
  stack.defer(async () => {
    for (const worker of workers.values()) await worker[Symbol.asyncDispose]();
  });
  const faults: string[] = [];
  const slowest: string[] = [];
  let prefix: string | undefined;

  /** Returns the rows of a source in the order of its topic. */
  const published = (uid: number): Promise<readonly number[]> =>
    stores.client
      .xrange(`${prefix}.table-${uid}.made`, "-", "+")
      .then((entries) =>
        entries.map(([, fields]) => JSON.parse(fields[fields.indexOf("data") + 1] ?? "").seq),
      );
  const isPublished = async (): Promise<boolean> => {
    const counts = await Promise.all(upstreams.map((_, uid) => published(uid)));
    return counts.every((rows, uid) => rows.length >= (upstreams[uid]?.changes.length ?? 0));
  };

  for (let round = 0; round < rounds; round++) {
    for (const shift of SHIFTS) {
      for (const clock of shift)
        if (!workers.has(clock)) workers.set(clock, await startWorker(stores, clock));
      for (const [clock, worker] of workers) {
        if (shift.includes(clock)) continue;
        await worker[Symbol.asyncDispose]();
        workers.delete(clock);
      }
      const [[, worker] = []] = workers;
      if (worker) prefix ??= await install(worker, upstreams);
      for (const upstream of upstreams) for (let row = 0; row < 3; row++) upstream.insert();
      const startedAt = performance.now();
      await until(isPublished, { everyMs: 100, ceilingMs: MAX_WAIT_MS }).catch(() =>
        faults.push(`clocks ${shift.join(" and ")}: sources were not polled within ${MAX_WAIT_MS} ms`),
      );
      slowest.push(`${shift.join(" and ")} ${((performance.now() - startedAt) / 1_000).toFixed(1)} s`);
    }
  }
  for (const [uid, upstream] of upstreams.entries()) {
    const rows = await published(uid);
    const made = upstream.changes.map(({ seq }) => seq);
    if (JSON.stringify(rows) !== JSON.stringify(made))
      faults.push(`table ${uid}: created ${made}, published ${rows}`);
  }
  return {
    lines: [
      `${SOURCES} sources, polled every ${INTERVAL_SECONDS} s. Time until all new rows were published:`,
      ...slowest,
    ],
    faults,
  };
};

const startWorker = (stores: SharedStores, clock: Clock): Promise<GatewayProcess> =>
  startGatewayProcess(
    {
      ...stores.env,
      INLET_DATA_DIR: join(stores.dir, `clock-${clock}`),
      INLET_ALLOW_NETWORKS: "127.0.0.0/8",
      INLET_LOG_LEVEL: "warn",
      NODE_OPTIONS: `--import=${join(import.meta.dirname, "clock-ahead.ts")}`,
      CLOCK_AHEAD_MS: String(CLOCKS[clock]),
    },
    { sourcesTiming: { ttlMs: 2_000, tickEveryMs: 250, maxReleasedPerTick: 64 } },
  );

async function install({ api }: GatewayProcess, upstreams: readonly PollUpstream[]): Promise<string> {
  const blueprint = await api<{ readonly id: string }>("POST", "/blueprints", {
    title: "Clocks",
    channels: upstreams.map(({ origin }, uid) => ({
      uid: `table-${uid}`,
      kind: "polling",
      config: {
        run: "always",
        request: { url: `${origin}/rows`, query: { since: "{{cursor}}" } },
        discriminator: { by: "sequence", path: "$.seq" },
        itemsPath: "$.rows",
        itemId: "$.id",
        startAt: "earliest",
        schedule: { intervalSeconds: INTERVAL_SECONDS },
      },
      events: [{ type: "made" }],
    })),
  });
  const app = await api<{ readonly id: string; readonly organizationId: string }>("POST", "/apps/install", {
    blueprintId: blueprint.id,
  });
  return `events.${app.organizationId}.apps.app.event_received.${app.id}`;
}
