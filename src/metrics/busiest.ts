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
const MAX_COUNTED = 10_000;
const ELECT_EVERY_MS = 30_000;
/** A channel that is shown stays until another is half as busy again: series that come and go are of no use. */
const INCUMBENT = 1.5;
/** Deliveries below which a channel makes room for others. */
const IDLE = 0.5;

interface Counted {
  readonly name: ChannelName;
  /** Since they were last read. */
  readonly counts: ChannelCounts;
  /** Deliveries, those of long ago counting less, as of the last election. */
  busy: number;
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
export function createBusiest({ most, nowMs }: { readonly most: number; readonly nowMs: () => number }) {
  const channels = new Map<number, Counted>();
  const rest = noCounts();
  let shown = 0;
  let electedAtMs = nowMs();

  function add(name: ChannelName): ChannelCounts {
    if (channels.size >= MAX_COUNTED) return rest;
    const isShown = shown < most;
    if (isShown) shown++;
    const counted = {
      name: { number: name.number, appId: name.appId, uid: name.uid },
      counts: noCounts(),
      busy: 0,
      recent: 0,
      shown: isShown ? noCounts() : undefined,
    };
    channels.set(name.number, counted);
    return counted.counts;
  }

  /** Hands on what was counted since the last reading. */
  function settle(one: Counted): void {
    one.recent += deliveriesOf(one.counts);
    const into = one.shown ?? rest;
    for (const field of FIELDS) {
      into[field] += one.counts[field];
      one.counts[field] = 0;
    }
  }

  function elect(): void {
    for (const one of channels.values()) one.busy = one.busy / 2 + one.recent + deliveriesOf(one.counts);
    const ranked = [...channels.values()].sort((a, b) => rankOf(b) - rankOf(a));
    const elected = new Set(ranked.slice(0, most));
    for (const [number, one] of channels) {
      if (!elected.has(one)) one.shown = undefined;
      settle(one);
      one.recent = 0;
      if (elected.has(one)) one.shown ??= noCounts();
      else if (one.busy < IDLE) channels.delete(number);
    }
    shown = elected.size;
  }

  return {
    /** To be asked for at each count, not kept. */
    countsOf: (name: ChannelName): ChannelCounts => channels.get(name.number)?.counts ?? add(name),
    /** All that is shown, the rest last. */
    read(): readonly { readonly name: Pick<ChannelName, "appId" | "uid">; readonly counts: ChannelCounts }[] {
      if (nowMs() - electedAtMs >= ELECT_EVERY_MS) {
        electedAtMs = nowMs();
        elect();
      }
      for (const one of channels.values()) settle(one);
      const named = [...channels.values()].flatMap((one) =>
        one.shown === undefined ? [] : [{ name: one.name, counts: one.shown }],
      );
      return [...named, { name: OTHERS, counts: rest }];
    },
  };
}

const deliveriesOf = (counts: ChannelCounts): number =>
  DELIVERY_RESULTS.reduce((sum, result) => sum + counts[result], 0);

const rankOf = ({ busy, shown }: Counted): number => (shown === undefined ? busy : busy * INCUMBENT);

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
