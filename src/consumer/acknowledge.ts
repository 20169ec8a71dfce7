import { setTimeout as delay } from "node:timers/promises";
import type { Commands } from "./commands.ts";

/** Between tries while Redis is away. */
const RETRY_MS = 250;
const MOST_IDS = 500;

export interface Acknowledger {
  /** Resolves when Redis has taken it. */
  readonly acknowledge: (topic: string, entryId: string) => Promise<void>;
  /** From now on what fails is given up: those entries are handed out again some day. */
  readonly close: () => void;
}

/** Acknowledges what was handled: all that comes in one turn of the event loop together, and until Redis takes it. */
export function createAcknowledger(
  commands: Pick<Commands, "acknowledge">,
  onProblem: (error: unknown) => void,
): Acknowledger {
  const closing = new AbortController();
  let pending: Map<string, string[]> = new Map();
  let flushed: Promise<void> | undefined;

  async function flush(): Promise<void> {
    await new Promise(setImmediate);
    flushed = undefined;
    const batch = pending;
    pending = new Map();
    await Promise.all([...batch].map(([topic, ids]) => acknowledgeAll(topic, ids)));
  }

  async function acknowledgeAll(topic: string, ids: readonly string[]): Promise<void> {
    for (let at = 0; at < ids.length; at += MOST_IDS) {
      await untilTaken(topic, ids.slice(at, at + MOST_IDS));
    }
  }

  async function untilTaken(topic: string, ids: readonly string[]): Promise<void> {
    for (;;) {
      try {
        return await commands.acknowledge(topic, ids);
      } catch (error) {
        onProblem(error);
        if (closing.signal.aborted) return;
        await delay(RETRY_MS, undefined, { signal: closing.signal }).catch(() => {});
      }
    }
  }

  return {
    acknowledge(topic, entryId) {
      const ids = pending.get(topic);
      if (ids === undefined) pending.set(topic, [entryId]);
      else ids.push(entryId);
      flushed ??= flush();
      return flushed;
    },
    close: () => closing.abort(),
  };
}
