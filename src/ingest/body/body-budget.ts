import { createFairBudget, type FairBudget } from "../../lib/fair-budget.ts";
import { createLimiter, type HeldWeight, type Limiter } from "../../lib/limiter.ts";
import { createRateBuckets, type RateBuckets } from "../../lib/rate-buckets.ts";
import { sleep } from "../../lib/sleep.ts";

/** Memory budget for all request bodies of this process, in bytes. A body counts from its first byte until its response is sent. */
const MAX_BODIES_BYTES = 256 * 1024 * 1024;
export const DEFAULT_BODY_BYTES = MAX_BODIES_BYTES / 2;
/** The first 64 KiB of each body are not charged to the budget, so small bodies are accepted even when it is used up. */
const FREE_BYTES = 64 * 1024;
/**
 * Bodies that arrive at this rate or faster are never rejected as slow. A 25 MiB body below this rate cannot arrive within the request
 * timeout (see `listener.ts`).
 */
const SLOW_BYTES_PER_SECOND = 400 * 1024;
/**
 * Decompressed bytes that an organization may produce per second, as a fraction of its body budget. The rate is limited because
 * decompression takes CPU time from all organizations.
 */
const DECODED_FRACTION_PER_SECOND = 1 / 4;
/** Maximum time that a body waits for the decoding rate to recover, even if an earlier body exceeded that rate many times over. */
const MAX_DEBT_MS = 1_000;
/**
 * Compressed bodies that decode to more bytes than this count as large. They must first reserve memory in their organization's limit for
 * large bodies.
 */
export const LARGE_BODY_BYTES = 256 * 1024;
/**
 * Maximum bytes of decoded large bodies that one organization may hold in memory, until their responses are sent. A single body may exceed
 * it. Other bodies wait compressed, or partly decoded if their final size is unknown. The value is this low because V8 marks the whole heap
 * on the main thread once the memory outside the heap exceeds 64 MiB.
 */
const DECODED_AT_ONCE_BYTES = 16 * 1024 * 1024;
const MAX_WAITING = 100;
/** Maximum time that a body waits to be decoded. After that, the sender receives a 503 with `Retry-After`. */
const DECODE_WAIT_MS = 2_000;
/**
 * Maximum time that a large decoded body keeps the next one from being decoded. Reading a large body takes tens of milliseconds. The rest
 * of its delivery may wait, for example for keys. That wait needs no CPU, so it must not block other bodies.
 */
const MAX_DECODE_LOCK_MS = 250;
/** Minimum age of a body before its transfer rate is compared with others. A younger body gives too imprecise a rate. */
const MIN_RATED_AGE_MS = 2_000;

export interface BodyBudget {
  readonly room: FairBudget<string>;
  /** Bodies that are still arriving, by organization. When an organization's budget is used up, its slowest body is rejected. */
  readonly reading: Map<string, Set<HeldBody>>;
  /** Limits the decoded bytes per second of each organization, because small compressed bodies can become large. */
  readonly decoded: RateBuckets<string>;
  /**
   * Decoding limits by organization. They apply to large compressed bodies. While the organization exceeds its decoding rate, they apply to
   * all its compressed bodies.
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
   * Lock held by one body at a time while it is decoded and read. Each decoder runs on its own thread, so several at once would use all CPU
   * cores.
   */
  readonly decodeLock: Limiter;
  decoded: number;
  waiting: number;
  /** Number of bodies that have reserved memory and now wait for the decode lock or the decoding rate. */
  waitingForLock: number;
}

interface BodyBudgetOptions {
  readonly totalBytes?: number;
  /** Monotonic clock, in milliseconds. */
  readonly nowMs?: () => number;
  /** Returns the body budget of an organization in bytes. `undefined` means the default, which is half of the total budget. */
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

/** The share of the memory budget that one delivery holds, from the first byte of its body until its response is sent. */
export class HeldBody {
  readonly #budget: BodyBudget;
  readonly #organizationId: string;
  #charged = 0;
  #startedAtMs = 0;
  #rejectSlow: (() => void) | undefined;
  /** Memory reserved from the limit for large bodies. `release` returns it. */
  #room: HeldWeight | undefined;
  #heldLock: HeldWeight | undefined;
  #lockTimeout: NodeJS.Timeout | undefined;
  /**
   * Remaining time that this body may wait, in milliseconds. A body can outgrow its reservation several times and waits each time, so all
   * waits share this time.
   */
  #decodeWaitLeftMs: number;
  /** Aborts a pending wait when `release` is called. Otherwise memory that is granted after `release` would never be returned. */
  #released: AbortController | undefined;

  constructor(budget: BodyBudget, organizationId: string) {
    this.#budget = budget;
    this.#organizationId = organizationId;
    this.#decodeWaitLeftMs = budget.decodeWaitMs;
  }

  /**
   * Charges the next chunk of the body to the budget. Returns false if the budget is used up.
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

  /** Marks the body as complete, so that it is no longer rejected for being slow. */
  endReading(): void {
    if (this.#rejectSlow === undefined) return;
    this.#rejectSlow = undefined;
    const { reading } = this.#budget;
    const others = reading.get(this.#organizationId);
    others?.delete(this);
    if (others?.size === 0) reading.delete(this.#organizationId);
  }

  /**
   * Returns true if a small body may be decoded now. Returns false if its organization has used up its decoding rate, or if other bodies
   * already wait to be decoded.
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
   * Reduces the reserved memory to the final decoded size. A large body keeps the decode lock until `releaseDecodeLock` is called or
   * `maxDecodeLockMs` has passed.
   */
  endDecoding(bytes: number): void {
    this.#room?.shrinkTo(bytes);
    if (this.#room === undefined) this.releaseDecodeLock();
    else this.#lockTimeout = setTimeout(() => this.releaseDecodeLock(), this.#budget.maxDecodeLockMs).unref();
  }

  /** True while this large body is read after decoding, which keeps the next body from being decoded. */
  get holdsDecodeLock(): boolean {
    return this.#lockTimeout !== undefined;
  }

  /** Allows the next body to be decoded. Called after this body has been read. */
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

  /** Returns all charged bytes to the budget. Called once the response is sent, or when only the decoded copy is left. */
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
