import type { EventCounts } from "./event-counts.ts";

export interface ChannelCounts {
  /** Deliveries, by result. */
  accepted: number;
  handshake: number;
  unverified: number;
  refused: number;
  failed: number;
  /** Items, by outcome. */
  published: number;
  /** Events that the channel missed and a poll found. */
  recovered: number;
  duplicate: number;
  /** Items that no definition published because of its `when`, or that matched none with `onNoMatch: ignore`. */
  ignored: number;
  quarantined: number;
}

export const DELIVERY_RESULTS = ["accepted", "handshake", "unverified", "refused", "failed"] as const;
export const EVENT_OUTCOMES = ["published", "recovered", "duplicate", "ignored", "quarantined"] as const;
const FIELDS = [...DELIVERY_RESULTS, ...EVENT_OUTCOMES];

export interface ChannelName {
  readonly number: number;
  readonly appId: string;
  readonly uid: string;
}

/** Label value for all channels without their own time series. No app, subscription or organization has this id. */
export const OTHER = "other";
const OTHERS = { appId: OTHER, uid: OTHER } as const;

/** Maximum number of channels that are counted individually to find the busiest. All further channels count as `other`. */
const MAX_COUNTED_CHANNELS = 10_000;
const RANK_EVERY_MS = 30_000;
/**
 * Advantage of channels that already have a time series. Another channel replaces them only if it is 1.5 times as busy, because
 * short series are useless.
 */
const SHOWN_BONUS = 1.5;
/** Minimum score of a channel that is counted individually. The score is a weighted number of recent deliveries. */
const MIN_SCORE = 0.5;

interface Counted {
  readonly name: ChannelName;
  /** Counts since the last scrape. */
  readonly counts: ChannelCounts;
  /** Number of deliveries when the channels were last ranked. It decays exponentially, so that recent deliveries weigh more. */
  score: number;
  /** Number of deliveries since the last ranking that were already scraped. */
  recent: number;
  /** The channel's own time series. `undefined` if the channel is counted with all others. */
  shown: ChannelCounts | undefined;
}

/**
 * Counts the busiest channels individually and all others together. A channel's new series starts at 0, and its earlier counts stay with
 * the others. When it loses its series, its counts since the last scrape move to the others. So each delivery is counted exactly once, and
 * the sum of all rates never jumps.
 */
export function createChannelCounter({
  maxShown,
  nowMs,
}: {
  readonly maxShown: number;
  readonly nowMs: () => number;
}) {
  const channels = new Map<number, Counted>();
  const rest = noCounts();
  let shown = 0;
  let rankedAtMs = nowMs();

  function add(name: ChannelName): ChannelCounts {
    if (channels.size >= MAX_COUNTED_CHANNELS) return rest;
    const isShown = shown < maxShown;
    if (isShown) shown++;
    const counted = {
      name: { number: name.number, appId: name.appId, uid: name.uid },
      counts: noCounts(),
      score: 0,
      recent: 0,
      shown: isShown ? noCounts() : undefined,
    };
    channels.set(name.number, counted);
    return counted.counts;
  }

  /** Adds the counts since the last scrape to the channel's own time series. Without one, adds them to the series of all others. */
  function settle(one: Counted): void {
    one.recent += sumDeliveries(one.counts);
    const into = one.shown ?? rest;
    for (const field of FIELDS) {
      into[field] += one.counts[field];
      one.counts[field] = 0;
    }
  }

  function rankChannels(): void {
    for (const one of channels.values()) one.score = one.score / 2 + one.recent + sumDeliveries(one.counts);
    const ranked = [...channels.values()].sort((a, b) => computeRank(b) - computeRank(a));
    const top = new Set(ranked.slice(0, maxShown));
    for (const [number, one] of channels) {
      if (!top.has(one)) one.shown = undefined;
      settle(one);
      one.recent = 0;
      if (top.has(one)) one.shown ??= noCounts();
      else if (one.score < MIN_SCORE) channels.delete(number);
    }
    shown = top.size;
  }

  const countsOf = (name: ChannelName): ChannelCounts => channels.get(name.number)?.counts ?? add(name);

  return {
    /** Returns the counts of a channel. Do not keep the result, because the channel may stop being counted individually. */
    countsOf,
    /** Adds counts of the event path. */
    add(taken: EventCounts): void {
      const counts = countsOf(taken.channel);
      for (const result of DELIVERY_RESULTS) counts[result] += taken[result];
      counts.ignored += taken.ignored;
      for (const { published, recovered, duplicate } of taken.types.values()) {
        counts.published += published;
        counts.recovered += recovered;
        counts.duplicate += duplicate;
      }
      for (const items of taken.quarantined.values()) counts.quarantined += items;
    },
    /** Returns the counts of all time series. The series of all other channels comes last. */
    read(): readonly { readonly name: Pick<ChannelName, "appId" | "uid">; readonly counts: ChannelCounts }[] {
      if (nowMs() - rankedAtMs >= RANK_EVERY_MS) {
        rankedAtMs = nowMs();
        rankChannels();
      }
      for (const one of channels.values()) settle(one);
      const named = [...channels.values()].flatMap((one) =>
        one.shown === undefined ? [] : [{ name: one.name, counts: one.shown }],
      );
      return [...named, { name: OTHERS, counts: rest }];
    },
  };
}

const sumDeliveries = (counts: ChannelCounts): number =>
  DELIVERY_RESULTS.reduce((sum, result) => sum + counts[result], 0);

const computeRank = ({ score, shown }: Counted): number =>
  shown === undefined ? score : score * SHOWN_BONUS;

const noCounts = (): ChannelCounts => ({
  accepted: 0,
  handshake: 0,
  unverified: 0,
  refused: 0,
  failed: 0,
  published: 0,
  recovered: 0,
  duplicate: 0,
  ignored: 0,
  quarantined: 0,
});
