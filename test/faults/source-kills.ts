import { setTimeout as delay } from "node:timers/promises";
import { type SharedStores, startSharedStores } from "../support/stores.ts";
import { CEILING_MS } from "../support/until.ts";
import { type Feed, startFeeds } from "./feeds.ts";
import { formatProcesses, linesOf, type Rig, runStep, selectPart } from "./rig.ts";
import {
  FATES,
  type Fate,
  MOMENTS,
  type Moment,
  type SourceWorker,
  startSourceWorker,
} from "./source-workers.ts";

interface SourceCounts {
  readonly uid: string;
  readonly kind: Feed["kind"];
  readonly made: number;
  readonly entries: number;
  readonly lost: number;
  readonly doubled: number;
  /** Entries after an entry with a higher number. */
  readonly outOfOrder: number;
  /** Entries that no server sent. */
  readonly foreign: number;
}

interface InstalledApp {
  readonly id: string;
  readonly organizationId: string;
}

const MAKE_EVERY_MS = 100;
/** Number of sources per kind. */
const SOURCES = 20;
const KINDS = ["stream-", "table-"] as const;

/**
 * Kills, stops and disconnects workers while they read numbered events from event streams and polled tables. Then waits until all events
 * are on their topics, or until a timeout, and compares.
 *
 * With several processes for each worker, a kill of a worker is one of its supervisor, and processes that write are killed too.
 */
export const sourceKills: Rig = async ({ random, rounds, processes, part, print }) => {
  const fates = FATES.filter((fate) => processes > 1 || fate !== "process killed");
  const selected = selectPart(
    MOMENTS.flatMap((moment) => fates.map((fate) => formatStrike(fate, moment))),
    part,
  );
  await using stack = new AsyncDisposableStack();
  const stores = stack.use(await startSharedStores());
  const feeds = await startFeeds(SOURCES);
  for (const feed of feeds) stack.use(feed);
  const begin = async (index: number) =>
    stack.use(await startSourceWorker(stores, { index, processes, random }));
  // The first worker migrates the database. The others can then start in parallel.
  const first = await runStep(print, "start a worker", () => begin(0));
  const others = await runStep(print, "start two workers", () => Promise.all([1, 2].map(begin)));
  const workers = [first, ...others];
  const app = await runStep(print, "install the sources", () => install(first, feeds));

  const timer = setInterval(() => {
    for (const feed of feeds) feed.make(Math.floor(random() * (feed.kind === "sse" ? 4 : 1.4)));
  }, MAKE_EVERY_MS);
  stack.defer(() => clearInterval(timer));
  const strikes = new Map<string, number>();
  // Each fault is applied once at each moment.
  const total = rounds * fates.length * MOMENTS.length;
  for (let i = 0; i < total; i++) {
    const [fate, moment, topicPart] = chooseFault(i, fates);
    const key = formatStrike(fate, moment);
    if (!selected.includes(key)) continue;
    await delay(random() * 300);
    const index = i % workers.length;
    await runStep(print, `strike ${i + 1} of ${total}, worker ${index}, ${key}`, () =>
      (workers[index] ?? first).strike(fate, moment, topicPart),
    );
    strikes.set(key, (strikes.get(key) ?? 0) + 1);
  }
  clearInterval(timer);
  // Creates events after the last fault, to test that every source has recovered.
  for (const feed of feeds) feed.make(3);

  const counts = await runStep(print, "wait for the last events", () => auditAll(stores, app, feeds));
  const { api } = first.gateway();
  const quarantine = await api<readonly unknown[]>("GET", `/apps/${app.id}/quarantine`);
  const sum = (count: (one: SourceCounts) => number): number =>
    counts.reduce((total, one) => total + count(one), 0);
  const wrong = counts.filter((one) => one.lost + one.doubled + one.outOfOrder + one.foreign > 0);
  return {
    lines: [
      `${counts.length} sources, ${workers.length} workers with ${formatProcesses(processes)} each, one Redis; strikes:`,
      ...linesOf(strikes),
      `created ${sum(({ made }) => made)}, entries ${sum(({ entries }) => entries)}, quarantined ${quarantine.length}`,
      `lost ${sum(({ lost }) => lost)}, duplicated ${sum(({ doubled }) => doubled)}, out of order ${sum(({ outOfOrder }) => outOfOrder)}, foreign ${sum(({ foreign }) => foreign)}`,
    ],
    faults: [
      ...wrong.map((one) => JSON.stringify(one)),
      ...(quarantine.length > 0 ? [`${quarantine.length} quarantined`] : []),
      ...(counts.every(({ made }) => made > 0) ? [] : ["a source has created no events"]),
    ],
  };
};

const formatStrike = (fate: Fate, moment: Moment): string => `${fate} ${moment}`;

/** Returns the i-th fault: all fates at one moment, then at the next. The kind of source changes with each round. */
function chooseFault(i: number, fates: readonly Fate[]): readonly [Fate, Moment, topicPart: string] {
  const round = Math.floor(i / fates.length);
  const kind = i + round + Math.floor(round / MOMENTS.length);
  return [
    fates[i % fates.length] ?? "killed",
    MOMENTS[round % MOMENTS.length] ?? "random",
    `.${KINDS[kind % KINDS.length]}`,
  ];
}

async function install(worker: SourceWorker, feeds: readonly Feed[]): Promise<InstalledApp> {
  const { api } = worker.gateway();
  const blueprint = await api<{ readonly id: string }>("POST", "/blueprints", {
    title: "Ledger",
    channels: feeds.map(({ uid, kind, config }) => ({ uid, kind, config, events: [{ type: "made" }] })),
  });
  return api("POST", "/apps/install", { blueprintId: blueprint.id });
}

/** Repeats the audit until all events are stored, or until a timeout. */
async function auditAll(
  ...audited: readonly [SharedStores, InstalledApp, readonly Feed[]]
): Promise<readonly SourceCounts[]> {
  const deadline = performance.now() + CEILING_MS;
  let counts = await audit(...audited);
  while (counts.some(({ lost }) => lost > 0) && performance.now() < deadline) {
    await delay(500);
    counts = await audit(...audited);
  }
  return counts;
}

async function audit(
  stores: SharedStores,
  app: InstalledApp,
  feeds: readonly Feed[],
): Promise<readonly SourceCounts[]> {
  const prefix = `events.${app.organizationId}.apps.app.event_received.${app.id}`;
  return Promise.all(
    feeds.map(async (feed) => {
      const { uid, kind } = feed;
      const entries = await stores.client.xrange(`${prefix}.${uid}.made`, "-", "+");
      const numbers = entries.map(([, fields]) =>
        feed.numberOf(JSON.parse(fields[fields.indexOf("data") + 1] ?? "")),
      );
      return { uid, kind, ...compare(feed.numbers(), numbers) };
    }),
  );
}

function compare(made: readonly number[], found: readonly number[]) {
  const known = new Set(made);
  const seen = new Set<number>();
  let highest = Number.NEGATIVE_INFINITY;
  const counts = { doubled: 0, outOfOrder: 0, foreign: 0 };
  for (const n of found) {
    if (!known.has(n)) counts.foreign++;
    else if (seen.has(n)) counts.doubled++;
    else if (n < highest) counts.outOfOrder++;
    seen.add(n);
    highest = Math.max(highest, n);
  }
  return {
    ...counts,
    made: made.length,
    entries: found.length,
    lost: made.filter((n) => !seen.has(n)).length,
  };
}
