/** Counts of one channel; they are added to in place. */
export interface ChannelCounts {
  /** Deliveries by what became of them. */
  accepted: number;
  handshake: number;
  unverified: number;
  refused: number;
  failed: number;
  /** Items by what became of them. */
  published: number;
  duplicate: number;
  quarantined: number;
}

export const DELIVERY_RESULTS = ["accepted", "handshake", "unverified", "refused", "failed"] as const;
export const EVENT_OUTCOMES = ["published", "duplicate", "quarantined"] as const;
const FIELDS = [...DELIVERY_RESULTS, ...EVENT_OUTCOMES];

export interface ChannelName {
  readonly number: number;
  readonly appId: string;
  readonly uid: string;
}

/** The label of the rest; no app, subscription or organization has this id. */
export const OTHER = "other";
const OTHERS = { appId: OTHER, uid: OTHER } as const;

/** Channels that are counted one by one, so that the busiest of them are known; what further ones count is of the rest. */
const MAX_COUNTED_CHANNELS = 10_000;
const RANK_EVERY_MS = 30_000;
/** A channel that is shown stays until another is half as score again: series that come and go are of no use. */
const SHOWN_BONUS = 1.5;
/** Deliveries below which a channel makes room for others. */
const MIN_SCORE = 0.5;

interface Counted {
  readonly name: ChannelName;
  /** Since they were last read. */
  readonly counts: ChannelCounts;
  /** Deliveries, those of long ago counting less, as of the last election. */
  score: number;
  /** Deliveries that were handed on since then. */
  recent: number;
  /** Set while it is shown. */
  shown: ChannelCounts | undefined;
}

/**
 * Counts by channel, for so many of the busiest, and for the rest together. The series of a channel that comes up later begins at 0:
 * what it had counted stays with the rest. What one that leaves has counted since the last reading goes there. So no
 * sum of rates jumps, and nothing is counted twice or not at all.
 */
export function createChannelCounter({ maxShown, nowMs }: { readonly maxShown: number; readonly nowMs: () => number }) {
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

  /** Hands on what was counted since the last reading. */
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

  return {
    /** To be asked for at each count, not kept. */
    countsOf: (name: ChannelName): ChannelCounts => channels.get(name.number)?.counts ?? add(name),
    /** All that is shown, the rest last. */
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

const computeRank = ({ score, shown }: Counted): number => (shown === undefined ? score : score * SHOWN_BONUS);

const noCounts = (): ChannelCounts => ({
  accepted: 0,
  handshake: 0,
  unverified: 0,
  refused: 0,
  failed: 0,
  published: 0,
  duplicate: 0,
  quarantined: 0,
});
