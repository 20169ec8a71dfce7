const MAX_KEYS = 32_768;
const BURST_MS = 1_000;
/** Tolerance in ms for rounding errors in sums of fractional milliseconds. */
const ROUNDING_MS = 1e-6;

export interface BucketOptions {
  readonly maxKeys?: number;
  readonly burstMs?: number;
  /** Maximum time in ms for refilling the tokens that were taken in excess. Unlimited by default. */
  readonly maxDebtMs?: number;
}

/** Called after tokens were taken from a bucket with a limit. */
type OnTaken<K> = (key: K, tokens: number, perSecond: number) => void;

/**
 * Token buckets by key, local to this process. A bucket holds the tokens of one burst. All rates are in tokens per second, and
 * `undefined` stands for no limit. `nowMs` must be monotonic.
 *
 * This is the generic cell rate algorithm (ITU-T I.371): each bucket is only the time at which it will be full again. A check is
 * therefore cheap enough for every request.
 *
 * Two generations of entries limit the memory. When the young generation has `maxKeys` entries, it replaces the old one. Entries
 * that were not used since the previous replacement are dropped, as if their buckets were full.
 */
export class TokenBuckets<K> {
  readonly #maxKeys: number;
  readonly #burstMs: number;
  readonly #maxDebtMs: number;
  readonly #onTaken: OnTaken<K> | undefined;
  #young = new Map<K, number>();
  #old = new Map<K, number>();

  constructor({
    maxKeys = MAX_KEYS,
    burstMs = BURST_MS,
    maxDebtMs = Number.POSITIVE_INFINITY,
    onTaken,
  }: BucketOptions & { readonly onTaken?: OnTaken<K> } = {}) {
    this.#onTaken = onTaken;
    this.#maxKeys = maxKeys;
    this.#burstMs = burstMs;
    this.#maxDebtMs = maxDebtMs;
  }

  /** Takes one token. Returns 0 on success, otherwise the time in ms until a token is available. */
  take(key: K, perSecond: number | undefined, nowMs: number): number {
    if (perSecond === undefined) return 0;
    const before = Math.max(this.#readForUpdate(key), nowMs);
    const after = before + 1_000 / perSecond;
    const waitMs = this.#waitUntil(after, nowMs);
    this.#young.set(key, waitMs === 0 ? after : before);
    if (waitMs === 0) this.#onTaken?.(key, 1, perSecond);
    return waitMs;
  }

  /** Returns what `take` would return, but takes no token. */
  look(key: K, perSecond: number | undefined, nowMs: number): number {
    if (perSecond === undefined) return 0;
    const before = Math.max(this.#young.get(key) ?? this.#old.get(key) ?? 0, nowMs);
    return this.#waitUntil(before + 1_000 / perSecond, nowMs);
  }

  /** Takes tokens even if the bucket has too few. `take` then returns a wait until the missing tokens are refilled. */
  overdraw(key: K, tokens: number, perSecond: number | undefined, nowMs: number): void {
    if (perSecond === undefined) return;
    this.#subtract(key, tokens, perSecond, nowMs);
    this.#onTaken?.(key, tokens, perSecond);
  }

  /** Counts tokens that another process has taken from the same bucket. */
  countElsewhere(key: K, tokens: number, perSecond: number, nowMs: number): void {
    this.#subtract(key, tokens, perSecond, nowMs);
  }

  #subtract(key: K, tokens: number, perSecond: number, nowMs: number): void {
    const before = Math.max(this.#readForUpdate(key), nowMs);
    const after = before + (tokens * 1_000) / perSecond;
    this.#young.set(key, Math.max(before, Math.min(after, nowMs + this.#burstMs + this.#maxDebtMs)));
  }

  #readForUpdate(key: K): number {
    const known = this.#young.get(key);
    if (known !== undefined) return known;
    const kept = this.#old.get(key) ?? 0;
    if (this.#young.size >= this.#maxKeys) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    return kept;
  }

  #waitUntil(fullAtMs: number, nowMs: number): number {
    const waitMs = fullAtMs - nowMs - this.#burstMs;
    return waitMs <= ROUNDING_MS ? 0 : waitMs;
  }
}
