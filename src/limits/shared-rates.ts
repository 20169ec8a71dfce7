import { type BucketOptions, TokenBuckets } from "./token-buckets.ts";

type Key = string | number;

/** Tokens that one process has taken from a bucket. */
export interface TakenTokens {
  /** Name of the buckets, such as `hook.channel`. */
  readonly buckets: string;
  readonly key: Key;
  readonly tokens: number;
  readonly perSecond: number;
}

/** Creates token buckets. Buckets with the same name are shared by all processes of a machine. */
export interface Rates {
  readonly buckets: <K extends Key>(name: string, options?: BucketOptions) => TokenBuckets<K>;
}

/** Rates of a gateway with one process. */
export const ownRates: Rates = { buckets: (_, options) => new TokenBuckets(options) };

export interface SharedRates extends Rates {
  /** Counts tokens that another process has taken. */
  readonly receive: (taken: readonly TakenTokens[]) => void;
  /** Sends the tokens that this process has taken. Called at short intervals. */
  readonly flush: () => void;
}

/** Minimum part of a second's tokens that is sent at the next flush. */
const SENT_PART = 0.01;
/** Time in ms after which a smaller part is sent. */
const MAX_AGE_MS = 500;
/** Smaller parts are never sent, because they hardly change a bucket. */
const IGNORED_PART = 0.001;

interface Pending extends TakenTokens {
  tokens: number;
  readonly sinceMs: number;
}

/**
 * Creates token buckets that several processes share. Each process takes tokens from its own buckets at once, and also counts the tokens
 * that the others have taken. For the time of a flush, the processes together can take more than the bucket holds. The excess is a debt in
 * all processes, so that the long-term rate is exact.
 *
 * @param send sends taken tokens to all other processes
 * @param nowMs monotonic clock
 */
export function createSharedRates({
  send,
  nowMs = () => performance.now(),
}: {
  readonly send: (taken: readonly TakenTokens[]) => void;
  readonly nowMs?: () => number;
}): SharedRates {
  const receivers = new Map<string, (taken: TakenTokens) => void>();
  const pending = new Map<string, Pending>();

  function record(buckets: string, key: Key, tokens: number, perSecond: number): void {
    const id = `${buckets} ${key}`;
    const known = pending.get(id);
    if (known === undefined) pending.set(id, { buckets, key, tokens, perSecond, sinceMs: nowMs() });
    else known.tokens += tokens;
  }

  return {
    buckets<K extends Key>(name: string, options: BucketOptions = {}) {
      const onTaken = (key: Key, tokens: number, perSecond: number) => record(name, key, tokens, perSecond);
      const created = new TokenBuckets<K>({ ...options, onTaken });
      receivers.set(name, ({ key, tokens, perSecond }) =>
        created.countElsewhere(key as K, tokens, perSecond, nowMs()),
      );
      return created;
    },
    receive(taken) {
      for (const one of taken) receivers.get(one.buckets)?.(one);
    },
    flush() {
      const now = nowMs();
      const taken: TakenTokens[] = [];
      for (const [id, { buckets, key, tokens, perSecond, sinceMs }] of pending) {
        const part = tokens / perSecond;
        if (part < SENT_PART && now - sinceMs < MAX_AGE_MS) continue;
        pending.delete(id);
        if (part >= IGNORED_PART) taken.push({ buckets, key, tokens, perSecond });
      }
      if (taken.length > 0) send(taken);
    },
  };
}
