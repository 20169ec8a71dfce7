import { setTimeout as delay } from "node:timers/promises";
import { type KeeperDeps, takeOver } from "./recovery.ts";

/** Of ordered reading: which topics are this reader's. */
export interface OrderedTopics {
  /** Those of them that may be read: all that others have left of them is in the hand, or handled. */
  readonly mine: (topics: readonly string[]) => readonly string[];
  /** Gives all back. */
  readonly leave: () => Promise<void>;
  readonly running: Promise<void>;
}

/** The part of a lease that is not used: clocks do not run alike. */
const RESERVE = 0.2;
const MOST_GIVEN = 8;

/**
 * Keeps a fair share of the topics for this reader, under a lease that it renews. What pends of a topic when it comes is taken
 * over first, whoever had it: nobody else may read the topic now, and its order begins with the oldest.
 */
export function startOrderedTopics(deps: KeeperDeps): OrderedTopics {
  const { commands, hand, settings, signal, over, topics } = deps;
  const ttlMs = settings.deadAfterMs;
  const held = new Set<string>();
  const drained = new Set<string>();
  let share = Number.POSITIVE_INFINITY;
  let endsAtMs = Number.NEGATIVE_INFINITY;

  async function beat(): Promise<void> {
    // Whoever is about to stop takes no more.
    const all = signal.aborted ? [...held] : await topics.current();
    const given = [...held]
      .slice(Math.max(share, 0))
      .filter((topic) => !hand.isBusy(topic))
      .slice(0, MOST_GIVEN);
    for (const topic of given) giveUp(topic);
    const sentAtMs = performance.now();
    const answer = await commands.share(all, { ttlMs, given });
    share = answer.share;
    endsAtMs = sentAtMs + ttlMs * (1 - RESERVE);
    for (const topic of held) if (!answer.held.includes(topic)) giveUp(topic);
    for (const topic of answer.held) held.add(topic);
    await drain();
  }

  async function drain(): Promise<void> {
    for (const topic of held) {
      if (!drained.has(topic) && performance.now() < endsAtMs && (await takeOver(deps, topic, 0))) {
        drained.add(topic);
      }
    }
  }

  function giveUp(topic: string): void {
    held.delete(topic);
    drained.delete(topic);
    hand.drop(topic, hand.byTopic().get(topic) ?? []);
  }

  async function run(): Promise<void> {
    while (!over.aborted) {
      try {
        await beat();
      } catch (error) {
        if (!over.aborted) settings.onProblem({ kind: "redis", error });
      }
      const restMs = Math.min(ttlMs / 6, 1_000);
      await delay(restMs, undefined, { signal: over }).catch(() => {});
      if (performance.now() > endsAtMs) for (const topic of [...held]) giveUp(topic);
    }
  }

  return {
    mine: () => (performance.now() < endsAtMs ? [...drained] : []),
    async leave() {
      const given = [...held];
      await commands.share([], { ttlMs: 0, given });
    },
    running: run(),
  };
}
