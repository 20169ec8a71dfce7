import type { Commands } from "./commands.ts";
import { retry } from "./loop.ts";

const RETRY_MS = 250;
const MAX_IDS = 500;

/** Acknowledges handled entries, those of one turn of the event loop together, and retries until Redis takes them. */
export function createAcknowledger(
  commands: Pick<Commands, "acknowledge">,
  onError: (error: unknown) => void,
) {
  const closing = new AbortController();
  const retries = { signal: closing.signal, onError, backoffMs: () => RETRY_MS };
  let pending: Map<string, string[]> = new Map();
  let flushed: Promise<void> | undefined;

  async function flush(): Promise<void> {
    await new Promise(setImmediate);
    flushed = undefined;
    const batch = pending;
    pending = new Map();
    await Promise.all(
      [...batch].map(async ([topic, ids]) => {
        for (let at = 0; at < ids.length; at += MAX_IDS) {
          await retry(() => commands.acknowledge(topic, ids.slice(at, at + MAX_IDS)), retries);
        }
      }),
    );
  }

  return {
    /** Resolves when Redis has taken it. */
    acknowledge(topic: string, entryId: string): Promise<void> {
      const ids = pending.get(topic);
      if (ids === undefined) pending.set(topic, [entryId]);
      else ids.push(entryId);
      flushed ??= flush();
      return flushed;
    },
    /** No more retries: entries whose acknowledgement fails from now on are delivered again later. */
    close: () => closing.abort(),
  };
}
