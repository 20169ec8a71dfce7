import { setTimeout as delay } from "node:timers/promises";
import type { Commands } from "./commands.ts";
import type { Hand } from "./in-flight-window.ts";
import type { ConsumerSettings } from "./options.ts";
import type { TopicList } from "./topic-list.ts";

export interface RecoveryDeps {
  readonly settings: ConsumerSettings;
  readonly topics: TopicList;
  readonly commands: Commands;
  readonly hand: Hand;
  readonly signal: AbortSignal;
}

const FIRST = "0-0";
const MOST_TAKEN = 100;
/** Between looks at readers that are gone for good. */
const FORGET_EVERY_MS = 600_000;

/** What is kept for as long as handlers run, be the reading over or not. */
export interface KeeperDeps extends RecoveryDeps {
  /** Aborts when the last handler has ended. */
  readonly over: AbortSignal;
}

/** Keeps what is in the hand from looking like a dead reader's; what another reader has by now is dropped. */
export async function runKeeper({ commands, hand, settings, over }: KeeperDeps): Promise<void> {
  while (await waited(settings.deadAfterMs / 3, over)) {
    for (const [topic, ids] of hand.byTopic()) {
      try {
        hand.drop(topic, await commands.keep(topic, ids));
      } catch (error) {
        settings.onProblem({ kind: "redis", error });
      }
    }
  }
}

/** Takes over what readers have left that fell silent, and what they gave back. */
export async function runRecovery(deps: RecoveryDeps): Promise<void> {
  const { commands, hand, settings, signal, topics } = deps;
  let forgotAtMs = performance.now();
  do {
    try {
      for (const topic of await topics.current()) {
        if (signal.aborted || hand.room <= 0) break;
        await takeOver(deps, topic, settings.deadAfterMs);
      }
      if (performance.now() - forgotAtMs < FORGET_EVERY_MS) continue;
      forgotAtMs = performance.now();
      for (const topic of await topics.current()) await commands.forgetReaders(topic);
    } catch (error) {
      if (!signal.aborted) settings.onProblem({ kind: "redis", error });
    }
    // Not all readers at once.
  } while (await waited(settings.deadAfterMs * (0.25 + Math.random() / 4), signal));
}

/** Of one topic, all that was in other hands for so long; false where it broke off for want of room. */
export async function takeOver(
  { commands, hand, settings, signal }: RecoveryDeps,
  topic: string,
  idleMs: number,
): Promise<boolean> {
  let from = FIRST;
  do {
    if (signal.aborted || hand.room <= 0) return false;
    const count = Math.min(MOST_TAKEN, hand.room);
    const { next, entries, lost } = await commands.takeOver(topic, { idleMs, from, count });
    if (lost.length > 0) settings.onProblem({ kind: "lost", topic, entryIds: lost });
    hand.add(entries);
    from = next;
  } while (from !== FIRST);
  return true;
}

const waited = (ms: number, signal: AbortSignal): Promise<boolean> =>
  delay(ms, undefined, { signal }).then(
    () => true,
    () => false,
  );
