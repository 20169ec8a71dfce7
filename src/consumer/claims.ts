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
  /** Aborts when the reader stops. */
  readonly signal: AbortSignal;
  /** Aborts later, when the last handler has ended. */
  readonly idle: AbortSignal;
}

const FIRST = "0-0";
const MAX_CLAIMED = 100;
const AFTER_ERROR_MS = 500;
const CLEANUP_EVERY_MS = 600_000;

/** Extends the claims on all entries in flight, until the last handler has ended; drops those that another reader has claimed. */
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

/** Claims entries that dead readers had, and those that readers released. */
export function recoverEntries(deps: ReadingDeps): Promise<void> {
  const { commands, window, settings, signal, onError, topics } = deps;
  // Readers that start together do not claim together.
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

/** Claims all entries of a topic that have been idle for so long; false where the window was full first. */
async function claimAll(
  { commands, window, settings, signal }: ReadingDeps,
  topic: string,
  idleMs: number,
): Promise<boolean> {
  let from = FIRST;
  do {
    if (signal.aborted || window.free <= 0) return false;
    const count = Math.min(MAX_CLAIMED, window.free);
    const { next, entries, lost } = await commands.claimIdle(topic, { idleMs, from, count });
    if (lost.length > 0) settings.onProblem({ kind: "lost", topic, entryIds: lost });
    window.add(entries);
    from = next;
  } while (from !== FIRST);
  return true;
}

/** The topics that an ordered reader owns. */
export interface OwnedTopics {
  /** Those whose pending entries have all been claimed, and that may be read on. */
  readonly readable: () => readonly string[];
  readonly release: () => Promise<void>;
  readonly running: Promise<void>;
}

/** The part of a lease that is not used: clocks do not run alike. */
const LEASE_RESERVE = 0.2;
const MAX_RELEASED = 8;

/**
 * Owns a fair share of the topics under a lease that it renews. A topic's pending entries are claimed first, those of live
 * readers too: nobody else may read the topic now, and its order begins with the oldest.
 */
export function startOwnedTopics(deps: ReadingDeps): OwnedTopics {
  const { commands, window, settings, signal, idle, onError, topics } = deps;
  const ttlMs = settings.deadAfterMs;
  const owned = new Set<string>();
  const claimed = new Set<string>();
  let share = Number.POSITIVE_INFINITY;
  let leaseEndMs = Number.NEGATIVE_INFINITY;

  async function renew(): Promise<void> {
    if (performance.now() > leaseEndMs) for (const topic of [...owned]) forget(topic);
    // A reader that stops keeps its topics, and is assigned no more.
    const all = signal.aborted ? [...owned] : await topics.current();
    const released = [...owned]
      .slice(Math.max(share, 0))
      .filter((topic) => !window.isBusy(topic))
      .slice(0, MAX_RELEASED);
    for (const topic of released) forget(topic);
    const sentAtMs = performance.now();
    const answer = await commands.rebalance(all, { ttlMs, released });
    share = answer.share;
    leaseEndMs = sentAtMs + ttlMs * (1 - LEASE_RESERVE);
    for (const topic of owned) if (!answer.owned.includes(topic)) forget(topic);
    for (const topic of answer.owned) owned.add(topic);
    for (const topic of owned) {
      if (claimed.has(topic) || performance.now() >= leaseEndMs) continue;
      if (await claimAll(deps, topic, 0)) claimed.add(topic);
    }
  }

  function forget(topic: string): void {
    owned.delete(topic);
    claimed.delete(topic);
    window.drop(topic, window.byTopic().get(topic) ?? []);
  }

  const pauseMs = Math.min(ttlMs / 6, 1_000);
  return {
    readable: () => (performance.now() < leaseEndMs ? [...claimed] : []),
    async release() {
      await commands.rebalance([], { ttlMs: 0, released: [...owned] });
    },
    running: repeat(() => renew().then(() => pauseMs), { signal: idle, onError, afterErrorMs: pauseMs }),
  };
}
