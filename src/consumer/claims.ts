import type { Commands } from "./commands.ts";
import type { InFlightWindow } from "./in-flight-window.ts";
import { repeat } from "./loop.ts";
import type { ConsumerSettings } from "./options.ts";
import type { TopicList } from "./topic-list.ts";

export interface ReadingDeps {
  readonly settings: ConsumerSettings;
  readonly topics: TopicList;
  readonly commands: Commands;
  readonly window: InFlightWindow;
  readonly onError: (error: unknown) => void;
  readonly signal: AbortSignal;
  /** Aborts when the reader has stopped and its last handler has finished. */
  readonly idle: AbortSignal;
}

const FIRST = "0-0";
const MAX_CLAIMED = 100;
const AFTER_ERROR_MS = 500;
const CLEANUP_EVERY_MS = 600_000;

/**
 * Keeps telling Redis that this reader still works on its entries, until the last handler has finished. Drops entries that another
 * reader has claimed.
 */
export const extendClaims = ({ commands, window, settings, idle, onError }: ReadingDeps): Promise<void> =>
  repeat(
    async () => {
      for (const [topic, ids] of window.byTopic()) {
        await commands.extendClaims(topic, ids).then((lost) => window.drop(topic, lost), onError);
      }
      return settings.deadAfterMs / 3;
    },
    { signal: idle, onError, afterErrorMs: AFTER_ERROR_MS },
  );

/** Periodically claims entries of dead readers, and entries that stopping readers have released. */
export function recoverEntries(deps: ReadingDeps): Promise<void> {
  const { commands, window, settings, signal, onError, topics } = deps;
  // The random part prevents readers that started together from claiming at the same moment.
  const pauseMs = (): number => settings.deadAfterMs * (0.25 + Math.random() / 4);
  let cleanedAtMs = performance.now();
  return repeat(
    async () => {
      const all = await topics.current();
      for (const topic of all) {
        if (signal.aborted || window.free <= 0) break;
        await claimAll(deps, topic, settings.deadAfterMs);
      }
      if (performance.now() - cleanedAtMs >= CLEANUP_EVERY_MS) {
        cleanedAtMs = performance.now();
        for (const topic of all) await commands.removeGoneReaders(topic);
      }
      return pauseMs();
    },
    { signal, onError, afterErrorMs: pauseMs() },
  );
}

/** Claims all entries of a topic that have been pending for at least `idleMs`. Returns false if there is no more space for entries. */
async function claimAll(
  { commands, window, settings, signal }: ReadingDeps,
  topic: string,
  idleMs: number,
): Promise<boolean> {
  let from = FIRST;
  do {
    if (signal.aborted || window.claimable <= 0) return false;
    const count = Math.min(MAX_CLAIMED, window.claimable);
    const { next, entries, lost } = await commands.claimIdle(topic, { idleMs, from, count });
    if (lost.length > 0) settings.onProblem({ kind: "lost", topic, entryIds: lost });
    window.add(entries);
    from = next;
  } while (from !== FIRST);
  return true;
}

/**
 * The topics that this reader alone may read, for handling events in order. One lease covers all of them.
 *
 * Order by key needs a whole topic too. If two readers shared a topic, each would get some events of a key, and would have to ask the
 * other one about each event. With one reader per topic, order is decided in memory, and a new owner finds all earlier events of all
 * keys in the list of pending entries.
 */
export class TopicOwnership {
  /**
   * Topics by name. `isClaimed` is true once this reader has claimed the topic's pending entries, so that the topic can be read.
   *
   * Each new lease creates a new object, so that a lost and regained lease can be detected.
   */
  readonly #owned = new Map<string, { isClaimed: boolean }>();
  #leaseEndMs = Number.NEGATIVE_INFINITY;

  get topics(): readonly string[] {
    return [...this.#owned.keys()];
  }

  get isLeased(): boolean {
    return performance.now() < this.#leaseEndMs;
  }

  /** Returns true if this reader may handle entries of the topic now. */
  owns(topic: string): boolean {
    return this.isLeased && this.#owned.has(topic);
  }

  lease(topics: readonly string[], endMs: number): void {
    this.#leaseEndMs = endMs;
    for (const topic of topics) if (!this.#owned.has(topic)) this.#owned.set(topic, { isClaimed: false });
  }

  forget(topic: string): void {
    this.#owned.delete(topic);
  }

  /** Returns the topics that may have pending entries which this reader has not claimed yet. */
  unclaimed(): readonly string[] {
    return this.topics.filter((topic) => !this.#owned.get(topic)?.isClaimed);
  }

  noteClaimed(topic: string): void {
    const owned = this.#owned.get(topic);
    if (owned) owned.isClaimed = true;
  }

  /** Returns the topics that may be read now. Call `isAsBefore` after the read to check whether the reader kept the topic all the time. */
  readable(): { readonly topics: readonly string[]; readonly isAsBefore: (topic: string) => boolean } {
    const asked = new Map([...this.#owned].filter(([, { isClaimed }]) => this.isLeased && isClaimed));
    return {
      topics: [...asked.keys()],
      isAsBefore: (topic) => asked.get(topic) === this.#owned.get(topic),
    };
  }

  /** Notes that Redis may have delivered entries that this reader did not receive. They are claimed before the next read of the topic. */
  noteUnread(topic: string): void {
    const owned = this.#owned.get(topic);
    if (owned) owned.isClaimed = false;
  }
}

/** Unused share of the lease time. It is a margin for machines whose clocks run at different speeds. */
const LEASE_RESERVE = 0.2;
const MAX_RELEASED = 8;

/**
 * Leases a fair share of the topics and keeps renewing the lease. Claims all pending entries of a new topic first, to keep the
 * order.
 *
 * Even entries of live readers can be claimed, because no other reader may read the topic now.
 */
export function startOwnedTopics(deps: ReadingDeps & { readonly ownership: TopicOwnership }) {
  const { commands, window, settings, signal, idle, onError, ownership, topics } = deps;
  const ttlMs = settings.deadAfterMs;
  let share = Number.POSITIVE_INFINITY;

  async function renew(): Promise<void> {
    if (!ownership.isLeased) for (const topic of ownership.topics) forget(topic);
    // Do not take new topics while stopping. Keep the topics that the reader has.
    const all = signal.aborted ? ownership.topics : await topics.current();
    const released = ownership.topics
      .slice(Math.max(share, 0))
      .filter((topic) => !window.isBusy(topic))
      .slice(0, MAX_RELEASED);
    for (const topic of released) forget(topic);
    const sentAtMs = performance.now();
    const answer = await commands.rebalance(all, { ttlMs, released });
    share = answer.share;
    for (const topic of ownership.topics) if (!answer.owned.includes(topic)) forget(topic);
    ownership.lease(answer.owned, sentAtMs + ttlMs * (1 - LEASE_RESERVE));
    for (const topic of ownership.unclaimed()) {
      if (ownership.isLeased && (await claimAll(deps, topic, 0))) ownership.noteClaimed(topic);
    }
    window.resume();
  }

  function forget(topic: string): void {
    ownership.forget(topic);
    window.drop(topic, window.byTopic().get(topic) ?? []);
  }

  const pauseMs = Math.min(ttlMs / 6, 1_000);
  return {
    async release(): Promise<void> {
      await commands.rebalance([], { ttlMs: 0, released: ownership.topics });
    },
    running: repeat(() => renew().then(() => pauseMs), { signal: idle, onError, afterErrorMs: pauseMs }),
  };
}
