import { createFairBudget, type FairBudget } from "../../lib/fair-budget.ts";
import { createLimiter, type HeldWeight, type Limiter } from "../../lib/limiter.ts";
import { createRateBuckets, type RateBuckets } from "../../lib/rate-buckets.ts";
import { sleep } from "../../lib/sleep.ts";

/** Memory limit for all request bodies of this process, in bytes. A body counts until its response is sent. */
const MAX_BODIES_BYTES = 256 * 1024 * 1024;
export const DEFAULT_BODY_BYTES = MAX_BODIES_BYTES / 2;
/** Number of bytes of each body that do not count against the memory limit, so that small bodies are accepted even at the limit. */
const FREE_BYTES = 64 * 1024;
/**
 * Bodies that arrive at least this fast are never rejected as slow. At a lower rate, a 25 MiB body would exceed the request timeout anyway.
 */
const SLOW_BYTES_PER_SECOND = 400 * 1024;
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
const DECODE_WAIT_MS = 2_000;
/**
 * Maximum time that a decompressed large body delays the next one. Parsing a body takes tens of milliseconds, but its delivery may then
 * wait for keys without using CPU.
 */
const MAX_DECODE_LOCK_MS = 250;
/** Minimum age at which the transfer rate of a body is measured. The rate of a younger body would be too inaccurate. */
const MIN_RATED_AGE_MS = 2_000;

export interface BodyBudget {
  readonly room: FairBudget<string>;
  /** Bodies that are still arriving, by organization. At its memory limit, an organization loses its slowest body. */
  readonly reading: Map<string, Set<HeldBody>>;
  /** Limits how many decompressed bytes each organization may produce per second, because a small compressed body can become large. */
  readonly decoded: RateBuckets<string>;
  /**
   * Limits for decompression, by organization. They normally apply to large bodies, but to all bodies while the organization exceeds its
   * decompression rate.
   */
  readonly compressed: Map<string, CompressedBodies>;
  readonly decodeWaitMs: number;
  readonly maxDecodeLockMs: number;
  readonly bytesOf: (organizationId: string) => number;
  readonly nowMs: () => number;
}

interface CompressedBodies {
  readonly room: Limiter;
  /**
   * Allows one body at a time to be decompressed and parsed. Each decompression uses its own thread, so several at once would occupy all
   * CPU cores.
   */
  readonly decodeLock: Limiter;
  decoded: number;
  waiting: number;
  /** Number of bodies that have reserved memory and wait to be decompressed. */
  waitingForLock: number;
}

interface BodyBudgetOptions {
  readonly totalBytes?: number;
  /** Monotonic clock, in milliseconds. */
  readonly nowMs?: () => number;
  /** Returns the memory limit of an organization in bytes. `undefined` stands for half of the total limit. */
  readonly bytesOf?: (organizationId: string) => number | undefined;
}

export const createBodyBudget = ({
  totalBytes = MAX_BODIES_BYTES,
  nowMs = () => performance.now(),
  bytesOf,
}: BodyBudgetOptions = {}): BodyBudget => ({
  room: createFairBudget(totalBytes, bytesOf),
  reading: new Map(),
  decoded: createRateBuckets(),
  compressed: new Map(),
  decodeWaitMs: DECODE_WAIT_MS,
  maxDecodeLockMs: MAX_DECODE_LOCK_MS,
  bytesOf: (organizationId) => bytesOf?.(organizationId) ?? totalBytes / 2,
  nowMs,
});

/** The memory that one request body counts against its organization's limit, from its first byte until the response is sent. */
export class HeldBody {
  readonly #budget: BodyBudget;
  readonly #organizationId: string;
  #charged = 0;
  #startedAtMs = 0;
  #rejectSlow: (() => void) | undefined;
  /** Memory that this large body has reserved. `release` frees it. */
  #room: HeldWeight | undefined;
  #heldLock: HeldWeight | undefined;
  #lockTimeout: NodeJS.Timeout | undefined;
  /** Time for which this body may still wait, in ms. All waits of a body share this time, because a body may wait several times. */
  #decodeWaitLeftMs: number;
  /** Aborts a wait that is pending when `release` is called. Otherwise memory reserved after `release` would never be freed. */
  #released: AbortController | undefined;

  constructor(budget: BodyBudget, organizationId: string) {
    this.#budget = budget;
    this.#organizationId = organizationId;
    this.#decodeWaitLeftMs = budget.decodeWaitMs;
  }

  /**
   * Counts another chunk of the body against the memory limit. Returns false if the limit is reached.
   *
   * @param bytes size of the body so far, including this chunk
   * @param rejectSlow stops reading from the sender, releases the charged bytes and rejects the delivery
   */
  grow(bytes: number, chunkBytes: number, rejectSlow?: () => void): boolean {
    if (bytes <= FREE_BYTES) return true;
    if (rejectSlow !== undefined && this.#rejectSlow === undefined) this.#beginReading(rejectSlow);
    const { room } = this.#budget;
    while (!room.take(this.#organizationId, chunkBytes)) if (!this.#rejectSlowest()) return false;
    this.#charged += chunkBytes;
    return true;
  }

  #beginReading(rejectSlow: () => void): void {
    this.#rejectSlow = rejectSlow;
    this.#startedAtMs = this.#budget.nowMs();
    const { reading } = this.#budget;
    const others = reading.get(this.#organizationId);
    if (others === undefined) reading.set(this.#organizationId, new Set([this]));
    else others.add(this);
  }

  /** Marks the body as complete. From now on, it can no longer be rejected as too slow. */
  endReading(): void {
    if (this.#rejectSlow === undefined) return;
    this.#rejectSlow = undefined;
    const { reading } = this.#budget;
    const others = reading.get(this.#organizationId);
    others?.delete(this);
    if (others?.size === 0) reading.delete(this.#organizationId);
  }

  /**
   * Returns whether a small body may be decompressed now. False if its organization exceeds its decompression rate or has other bodies
   * waiting.
   */
  mayDecode(): boolean {
    const waitingForLock = this.#budget.compressed.get(this.#organizationId)?.waitingForLock ?? 0;
    return waitingForLock === 0 && this.#untilDecodingMs() === 0;
  }

  noteDecoded(bytes: number): void {
    const { decoded, nowMs } = this.#budget;
    decoded.overdraw(this.#organizationId, bytes, this.#decodedPerSecond(), nowMs(), MAX_DEBT_MS);
  }

  #untilDecodingMs(): number {
    const { decoded, nowMs } = this.#budget;
    return decoded.look(this.#organizationId, this.#decodedPerSecond(), nowMs());
  }

  #decodedPerSecond(): number {
    return Math.max(1, this.#budget.bytesOf(this.#organizationId) * DECODED_FRACTION_PER_SECOND);
  }

  /**
   * Waits until this body may be decoded. A large body first reserves `bytes` of memory, which replaces an earlier reservation. The body
   * then waits for the decode lock and the decoding rate. The reservation lasts until `release`, the lock until `releaseDecodeLock`.
   *
   * @returns false if the total wait exceeds the limit, or if too many bodies wait
   */
  async waitToDecode(bytes: number): Promise<boolean> {
    this.#stopDecoding();
    const { compressed } = this.#budget;
    const others = compressed.get(this.#organizationId) ?? {
      room: createLimiter(DECODED_AT_ONCE_BYTES),
      decodeLock: createLimiter(1),
      decoded: 0,
      waiting: 0,
      waitingForLock: 0,
    };
    if (others.waiting >= MAX_WAITING) return false;
    compressed.set(this.#organizationId, others);
    others.waiting++;
    this.#released ??= new AbortController();
    const { nowMs } = this.#budget;
    const beganAtMs = nowMs();
    const timeout = AbortSignal.timeout(Math.max(0, Math.ceil(this.#decodeWaitLeftMs)));
    const signal = AbortSignal.any([timeout, this.#released.signal]);
    let isWaitingForLock = false;
    try {
      using taken = new DisposableStack();
      const room =
        bytes > LARGE_BODY_BYTES ? taken.use(await others.room.acquire(bytes, { signal })) : undefined;
      others.waitingForLock++;
      isWaitingForLock = true;
      const heldLock = taken.use(await others.decodeLock.acquire(1, { signal }));
      for (let waitMs = this.#untilDecodingMs(); waitMs > 0; waitMs = this.#untilDecodingMs()) {
        await sleep(waitMs, signal);
        signal.throwIfAborted();
      }
      signal.throwIfAborted();
      this.#room = room;
      this.#heldLock = heldLock;
      taken.move();
      others.decoded++;
      return true;
    } catch {
      return false;
    } finally {
      if (isWaitingForLock) others.waitingForLock--;
      others.waiting--;
      this.#decodeWaitLeftMs -= nowMs() - beganAtMs;
      this.#forgetIdle(others);
    }
  }

  /**
   * Reduces the reserved memory to the actual size. A large body delays the next decompression until `releaseDecodeLock` is called or a
   * timeout expires.
   */
  endDecoding(bytes: number): void {
    this.#room?.shrinkTo(bytes);
    if (this.#room === undefined) this.releaseDecodeLock();
    else this.#lockTimeout = setTimeout(() => this.releaseDecodeLock(), this.#budget.maxDecodeLockMs).unref();
  }

  /** Whether this decompressed body is still being parsed, which delays the next decompression. */
  get holdsDecodeLock(): boolean {
    return this.#lockTimeout !== undefined;
  }

  /** Allows the next body to be decompressed. Called after this body has been parsed. */
  releaseDecodeLock(): void {
    clearTimeout(this.#lockTimeout);
    this.#lockTimeout = undefined;
    this.#heldLock?.[Symbol.dispose]();
  }

  #stopDecoding(): void {
    const others = this.#budget.compressed.get(this.#organizationId);
    if (this.#heldLock === undefined || others === undefined) return;
    this.releaseDecodeLock();
    this.#room?.[Symbol.dispose]();
    this.#heldLock = undefined;
    this.#room = undefined;
    others.decoded--;
    this.#forgetIdle(others);
  }

  #forgetIdle({ decoded, waiting }: CompressedBodies): void {
    if (decoded === 0 && waiting === 0) this.#budget.compressed.delete(this.#organizationId);
  }

  /** Frees all memory that this body counts. Called after the response was sent, or when only the decompressed copy is still needed. */
  release(): void {
    this.#released?.abort();
    this.#stopDecoding();
    if (this.#charged === 0) return;
    this.#budget.room.giveBack(this.#organizationId, this.#charged);
    this.#charged = 0;
  }

  #rejectSlowest(): boolean {
    const nowMs = this.#budget.nowMs();
    let slowest: HeldBody | undefined;
    let leastRate = SLOW_BYTES_PER_SECOND;
    for (const other of this.#budget.reading.get(this.#organizationId) ?? []) {
      const ageMs = nowMs - other.#startedAtMs;
      const rate = (other.#charged / ageMs) * 1_000;
      if (other === this || ageMs < MIN_RATED_AGE_MS || rate >= leastRate) continue;
      slowest = other;
      leastRate = rate;
    }
    if (slowest === undefined) return false;
    slowest.#rejectSlow?.();
    return true;
  }
}
