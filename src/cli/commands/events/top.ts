import type { Command } from "commander";
import { sleep } from "../../../lib/sleep.ts";
import type { ChannelTotals } from "../../../resources/events/series.ts";
import { listAppNames } from "../../client/app.ts";
import { appOptions, type Client, createAction, examples, parseCount } from "../../client/command.ts";
import { formatTime } from "../../client/times.ts";
import type { CommandContext } from "../../command-context.ts";
import { EXIT, type ExitCode } from "../../exit.ts";
import type { Column } from "../../output/table.ts";

interface TopOptions {
  readonly interval: number;
  readonly count?: number;
  readonly limit: number;
}

const RATES = ["received", "published", "duplicate", "quarantined", "rejected", "handlerFailed"] as const;
type Counts = Pick<ChannelTotals, (typeof RATES)[number]>;

/** Rates of a channel, in items per second. */
interface Rated extends Counts {
  readonly appId: string;
  readonly channel: string;
}

/** Counts of all channels since a fixed time. */
interface Snapshot {
  readonly atMs: number;
  readonly channels: ReadonlyMap<string, Counts & Pick<ChannelTotals, "appId" | "channel">>;
  /** Whether only the busiest channels were read. */
  readonly isCut: boolean;
}

const MINUTE_MS = 60_000;
/** The gateways write their counts at this interval. */
const WRITE_SECONDS = 10;
const MAX_INTERVAL_SECONDS = 3_600;
const MAX_CHANNELS = 1_000;
const DEFAULT_LIMIT = 20;
/** Age of the start time at which a later one replaces it, so that requests stay small. */
const MAX_RANGE_MS = 60 * MINUTE_MS;
/** Terminal sequence that moves the cursor to the first line and clears the screen. */
const CLEAR_SCREEN = "\x1b[H\x1b[J";
const NONE: Counts = {
  received: 0,
  published: 0,
  duplicate: 0,
  quarantined: 0,
  rejected: 0,
  handlerFailed: 0,
};

const RED = { "0": undefined, "*": "red" } as const;
const YELLOW = { "0": undefined, "*": "yellow" } as const;
const COLUMNS: readonly Column<Rated>[] = [
  { title: "channel", value: ({ channel }) => channel },
  { title: "received/s", value: ({ received }) => received },
  { title: "published/s", value: ({ published }) => published },
  { title: "rejected/s", value: ({ rejected }) => rejected, colors: RED },
  { title: "quarantined/s", value: ({ quarantined }) => quarantined, colors: YELLOW },
  { title: "failed/s", value: ({ handlerFailed }) => handlerFailed, colors: RED },
  { title: "duplicates/s", value: ({ duplicate }) => duplicate, isOptional: true },
];

export function define(command: Command, context: CommandContext): void {
  appOptions(command)
    .argument("[channel]", "only channels with this uid")
    .option(
      "--interval <seconds>",
      "time between two updates",
      parseCount(WRITE_SECONDS, MAX_INTERVAL_SECONDS),
      WRITE_SECONDS,
    )
    .option("--count <updates>", "end after this number of updates (default: at Ctrl-C)", parseCount(1, 1e6))
    .option(
      "--limit <channels>",
      "number of the busiest channels",
      parseCount(1, MAX_CHANNELS),
      DEFAULT_LIMIT,
    )
    .action(createAction<[string | undefined], TopOptions>(context, showTop));
  examples(command, [
    ["inlet top", "the busiest channels, every 10 seconds, until Ctrl-C"],
    ["inlet top --app shop --count 1", "the rates of the last full minute of one app"],
    ["inlet top --json --interval 60", "one JSON object per channel and minute"],
  ]).addHelpText(
    "after",
    `
The rates are differences of exact counts, which the gateways write every 10 seconds. The first update shows the last full minute.`,
  );
}

async function showTop(
  client: Client,
  [channel]: readonly [string | undefined],
  options: TopOptions,
): Promise<ExitCode> {
  const { api, io, output, selectedApp } = client;
  const appId = (await selectedApp())?.id;
  const read = async (fromMs: number, toMs: number): Promise<Snapshot> => {
    const query = { appId, channel, from: formatTime(fromMs), to: formatTime(toMs) };
    const { items, total } = await api.list<ChannelTotals>("/metrics/channels", query, MAX_CHANNELS);
    const channels = new Map(items.map((one) => [`${one.appId}/${one.channel}`, one]));
    return { atMs: toMs, channels, isCut: items.length < total };
  };
  const nowMs = Date.now();
  const minuteMs = nowMs - (nowMs % MINUTE_MS);
  let startMs = minuteMs - MINUTE_MS;
  let previous = await read(startMs, nowMs);
  const names = output.isJson ? new Map<string, string>() : await listAppNames(api);
  show(
    client,
    await read(startMs, minuteMs),
    { atMs: startMs, channels: new Map(), isCut: false },
    names,
    options,
  );
  for (let count = 1; count !== options.count; count++) {
    await sleep(options.interval * 1_000, io.signal);
    if (io.signal.aborted) return EXIT.done;
    const atMs = Date.now();
    const current = await read(startMs, atMs);
    show(client, current, previous, names, options);
    previous = current;
    if (atMs - startMs < MAX_RANGE_MS) continue;
    startMs = atMs - (atMs % MINUTE_MS) - MINUTE_MS;
    previous = await read(startMs, atMs);
  }
  return EXIT.done;
}

/** Prints the rates between two snapshots. */
function show(
  { io, output }: Client,
  current: Snapshot,
  previous: Snapshot,
  names: ReadonlyMap<string, string>,
  { limit }: TopOptions,
): void {
  const seconds = (current.atMs - previous.atMs) / 1_000;
  const rated = rateChannels(current, previous);
  const shown = rated.slice(0, limit);
  if (output.isJson) {
    const at = formatTime(current.atMs);
    for (const one of shown) output.one({ at, seconds, ...one });
    return;
  }
  const isOfOneApp = new Set(rated.map(({ appId }) => appId)).size < 2;
  const app = { title: "app", value: ({ appId }: Rated) => names.get(appId) ?? appId };
  if (io.stdout.isTTY) io.stdout.write(CLEAR_SCREEN);
  const time = new Date(current.atMs).toTimeString().slice(0, 8);
  const sum = rateOf(
    rated.reduce((all, { received }) => all + received, 0),
    1,
  );
  output.say(output.paint("dim", `${time}, ${sum} received per second, over ${Math.round(seconds)} seconds`));
  output.list(shown, isOfOneApp ? COLUMNS : [app, ...COLUMNS], "No channel received a delivery.");
}

/**
 * Returns the rates between two snapshots, the busiest channels first. Leaves out channels that joined the busiest ones in between, because
 * their earlier counts are unknown.
 */
export function rateChannels(current: Snapshot, previous: Snapshot): readonly Rated[] {
  const seconds = (current.atMs - previous.atMs) / 1_000;
  const rated = [...current.channels].flatMap(([key, totals]): Rated[] => {
    const before = previous.channels.get(key) ?? (previous.isCut ? undefined : NONE);
    if (before === undefined) return [];
    const rates = RATES.map((name) => [name, rateOf(totals[name] - before[name], seconds)] as const);
    return [{ appId: totals.appId, channel: totals.channel, ...NONE, ...Object.fromEntries(rates) }];
  });
  return rated.sort((a, b) => b.received - a.received);
}

/** Returns a rate with at most two decimals, which is never negative. */
const rateOf = (count: number, seconds: number): number =>
  Math.round((Math.max(0, count) / seconds) * 100) / 100;
