import { sleep } from "../../lib/sleep.ts";
import { FairLimiter, type HeldWeight } from "../../limits/fairness.ts";
import type { Rates } from "../../limits/shared-rates.ts";
import type { TokenBuckets } from "../../limits/token-buckets.ts";

/**
 * Bytes that an organization may decompress per second, as a fraction of its memory limit. Decompression needs a limit because it takes CPU
 * time from other organizations.
 */
const DECODED_FRACTION_PER_SECOND = 1 / 4;
/** Maximum time that a body waits because earlier bodies of its organization exceeded the decompression rate. */
const MAX_DEBT_MS = 1_000;
/**
 * Decompressed size above which a compressed body counts as large, in bytes. Large bodies must reserve memory before they are decompressed.
 */
export const LARGE_BODY_BYTES = 256 * 1024;
/**
 * Maximum bytes of decoded large bodies that one organization may hold in memory, until their responses are sent. A single body may exceed
 * it. Other bodies wait compressed, or partly decoded if their final size is unknown. The value is this low because V8 marks the whole heap
 * on the main thread once the memory outside the heap exceeds 64 MiB.
 */
const DECODED_AT_ONCE_BYTES = 16 * 1024 * 1024;
const MAX_WAITING = 100;
/** Maximum time that a compressed body waits to be decompressed, in ms. After that, the sender receives a 503 with `Retry-After`. */
const MAX_WAIT_MS = 2_000;
/**
 * Maximum time that a decompressed large body delays the next one. Parsing a body takes tens of milliseconds, but its delivery may then
 * wait for keys without using CPU.
 */
const MAX_LOCK_MS = 250;

/**
 * Limits for decompression, by organization. They normally apply to large bodies, but to all bodies while the organization exceeds its
 * decompression rate.
 */
export interface DecodeLimits {
  /** Limits how many decompressed bytes each organization may produce per second, because a small compressed body can become large. */
  readonly rate: TokenBuckets<string>;
  /** Only the organizations that decode bodies at the moment. */
  readonly queues: Map<string, DecodeQueue>;
  readonly maxWaitMs: number;
  readonly maxLockMs: number;
  /** Returns the memory limit of an organization in bytes. */
  readonly bytesOf: (organizationId: string) => number;
  /** Monotonic clock, in milliseconds. */
  readonly nowMs: () => number;
}

interface DecodeQueue {
  readonly room: FairLimiter;
  /**
   * Allows one body at a time to be decompressed and parsed. Each decompression uses its own thread, so several at once would occupy all
   * CPU cores.
   */
  readonly lock: FairLimiter;
  waiting: number;
}

export const createDecodeLimits = ({
  rates,
  ...options
}: Pick<DecodeLimits, "bytesOf" | "nowMs"> & { readonly rates: Rates }): DecodeLimits => ({
  ...options,
  rate: rates.buckets("body.decode", { maxDebtMs: MAX_DEBT_MS }),
  queues: new Map(),
  maxWaitMs: MAX_WAIT_MS,
  maxLockMs: MAX_LOCK_MS,
});

/** The place of one compressed body in the decode queue of its organization. */
export class DecodeTurn {
  readonly #limits: DecodeLimits;
  readonly #organizationId: string;
  /** Memory that this large body has reserved, until `end`. */
  #room: HeldWeight | undefined;
  #lock: HeldWeight | undefined;
  #lockTimeout: NodeJS.Timeout | undefined;
  /** Time for which this body may still wait, in ms. All waits of a body share this time, because a body may wait several times. */
  #waitLeftMs: number;
  readonly #ended = new AbortController();

  constructor(limits: DecodeLimits, organizationId: string) {
    this.#limits = limits;
    this.#organizationId = organizationId;
    this.#waitLeftMs = limits.maxWaitMs;
  }

  /**
   * Returns whether a small body may be decompressed without waiting. False if its organization exceeds its decompression rate or has other
   * bodies waiting.
   */
  mayStart(): boolean {
    const queue = this.#limits.queues.get(this.#organizationId);
    return (queue === undefined || queue.lock.waiting === 0) && this.#untilAllowedMs() === 0;
  }

  /**
   * Waits until this body may be decompressed. A large body first reserves `bytes` of memory, which replaces an earlier reservation. The
   * body then waits for the lock and the decompression rate.
   *
   * @returns false if the total wait exceeds the limit, too many bodies wait, or `end` is called
   */
  async wait(bytes: number): Promise<boolean> {
    this.#release();
    const queue = this.#findOrAddQueue();
    if (queue.waiting >= MAX_WAITING) return false;
    queue.waiting++;
    const beganAtMs = this.#limits.nowMs();
    const timeout = AbortSignal.timeout(Math.max(0, Math.ceil(this.#waitLeftMs)));
    const signal = AbortSignal.any([timeout, this.#ended.signal]);
    try {
      if (bytes > LARGE_BODY_BYTES) this.#room = await queue.room.acquire(bytes, { signal });
      this.#lock = await queue.lock.acquire(1, { signal });
      for (let waitMs = this.#untilAllowedMs(); waitMs > 0; waitMs = this.#untilAllowedMs()) {
        signal.throwIfAborted();
        await sleep(waitMs, signal);
      }
      signal.throwIfAborted();
    } catch {
      this.#release();
    }
    this.#waitLeftMs -= this.#limits.nowMs() - beganAtMs;
    queue.waiting--;
    this.#forgetIdle(queue);
    return this.#lock !== undefined;
  }

  /** Counts decompressed bytes against the organization's rate. */
  note(bytes: number): void {
    const { rate, nowMs } = this.#limits;
    rate.overdraw(this.#organizationId, bytes, this.#bytesPerSecond(), nowMs());
  }

  /**
   * Called when the body is decompressed. Reduces the reserved memory to the actual size. A large body delays the next decompression until
   * `releaseLock` is called or a timeout expires.
   */
  endDecoding(bytes: number): void {
    this.#room?.shrinkTo(bytes);
    if (this.#room === undefined) this.releaseLock();
    else this.#lockTimeout = setTimeout(() => this.releaseLock(), this.#limits.maxLockMs).unref();
  }

  /** Whether this decompressed body is still being parsed, which delays the next decompression. */
  get isParsing(): boolean {
    return this.#lockTimeout !== undefined;
  }

  /** Allows the next body to be decompressed. */
  releaseLock(): void {
    clearTimeout(this.#lockTimeout);
    this.#lockTimeout = undefined;
    this.#lock?.[Symbol.dispose]();
  }

  /** Ends all waits and frees the reserved memory. */
  end(): void {
    this.#ended.abort();
    this.#release();
  }

  #release(): void {
    this.releaseLock();
    this.#room?.[Symbol.dispose]();
    this.#lock = undefined;
    this.#room = undefined;
    const queue = this.#limits.queues.get(this.#organizationId);
    if (queue !== undefined) this.#forgetIdle(queue);
  }

  #findOrAddQueue(): DecodeQueue {
    const { queues } = this.#limits;
    const queue = queues.get(this.#organizationId) ?? {
      room: new FairLimiter(DECODED_AT_ONCE_BYTES),
      lock: new FairLimiter(1),
      waiting: 0,
    };
    queues.set(this.#organizationId, queue);
    return queue;
  }

  #forgetIdle({ room, lock, waiting }: DecodeQueue): void {
    if (waiting === 0 && room.isIdle && lock.isIdle) this.#limits.queues.delete(this.#organizationId);
  }

  #untilAllowedMs(): number {
    const { rate, nowMs } = this.#limits;
    return rate.look(this.#organizationId, this.#bytesPerSecond(), nowMs());
  }

  #bytesPerSecond(): number {
    return Math.max(1, this.#limits.bytesOf(this.#organizationId) * DECODED_FRACTION_PER_SECOND);
  }
}
