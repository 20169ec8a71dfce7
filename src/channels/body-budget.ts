import { createFairBudget, type FairBudget } from "../lib/fair-budget.ts";
import { createLimiter, type HeldWeight, type Limiter } from "../lib/limiter.ts";
import { createRateBuckets, type RateBuckets } from "../lib/rate-buckets.ts";
import { sleep } from "../lib/sleep.ts";

/** All bodies of deliveries that a gateway has at once, from their first bytes until they are answered. */
const MAX_BODIES_BYTES = 256 * 1024 * 1024;
/** Of them those of one organization. */
export const DEFAULT_BODY_BYTES = MAX_BODIES_BYTES / 2;
/** So much of each body is not charged: small ones pass also where there is no room. */
const FREE_BYTES = 64 * 1024;
/** A body of 25 MiB that comes slower is not there when its request ends (listener.ts). */
const SLOW_BYTES_PER_SECOND = 400 * 1024;
/** Of the bytes that an organization may have, as many as its compressed bodies may become in a second: reading them takes processors from all. */
const DECODED_PART_PER_SECOND = 1 / 4;
/** One body may become many times that: so long the next one waits at most. */
const MOST_DEBT_MS = 1_000;
/** A compressed body that becomes more than that needs room among the others of its organization. */
export const LARGE_BODY_BYTES = 256 * 1024;
/**
 * Of its large compressed bodies an organization has so much decoded and not answered, or one; the others wait as they came, or half decoded
 * where nothing says how large they become. V8 marks the whole heap, on the thread that everybody waits for, where more than 64 MiB of such
 * memory come together.
 */
const DECODED_AT_ONCE_BYTES = 16 * 1024 * 1024;
const MAX_WAITING = 100;
/** Then their senders are told to come again. */
const DECODE_WAIT_MS = 2_000;
/** A large one is read in tens of milliseconds. What else its delivery may wait for, keys, handshakes, others' turns, takes no processor. */
const READ_MS = 250;
/** The rate of a body says nothing before. */
const RATED_AFTER_MS = 2_000;

/** The room of bodies, shared by organizations. */
export interface BodyBudget {
  readonly room: FairBudget<string>;
  /** Bodies that are being read, by organization: those whose sender is slow give way. */
  readonly reading: Map<string, Set<HeldBody>>;
  /** What each organization has had decoded, in bytes: few that come quickly may become many. */
  readonly decoded: RateBuckets<string>;
  /** Compressed bodies of each organization that are large, or came when it had used up its rate: those that are decoded, and those that wait to be. */
  readonly compressed: Map<string, CompressedBodies>;
  /** How long one of those may wait. */
  readonly decodeWaitMs: number;
  /** How long a large one that is decoded keeps the next one waiting, at most. */
  readonly readMs: number;
  /** Bytes that an organization may have. */
  readonly bytesOf: (organizationId: string) => number;
  readonly nowMs: () => number;
}

interface CompressedBodies {
  readonly room: Limiter;
  /** One after the other is decoded and read, each by a thread of its own: together they would want all processors at once. */
  readonly turns: Limiter;
  decoded: number;
  waiting: number;
  /** Of those that wait, the ones that have room, and wait for their turn and for the rate. */
  inLine: number;
}

interface BodyBudgetOptions {
  readonly totalBytes?: number;
  /** Monotonic. */
  readonly nowMs?: () => number;
  /** What an organization may have; undefined: half of all. */
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
  readMs: READ_MS,
  bytesOf: (organizationId) => bytesOf?.(organizationId) ?? totalBytes / 2,
  nowMs,
});

/** The part of the budget that one delivery holds, from its body's first bytes until it is answered. */
export class HeldBody {
  readonly #budget: BodyBudget;
  readonly #organizationId: string;
  #charged = 0;
  #startedAtMs = 0;
  #giveWay: (() => void) | undefined;
  /** Its room among the large bodies of its organization, until it is released. */
  #room: HeldWeight | undefined;
  /** Among those that are decoded and read. */
  #turn: HeldWeight | undefined;
  /** Of a large one that is decoded, and keeps its turn while it is read. */
  #turnEnd: NodeJS.Timeout | undefined;
  /** Of what it may wait in all, however often it turns out to be larger than it has room for. */
  #decodeWaitLeftMs: number;
  /** Of one that has waited for room: aborts once it is released, as nothing would give the room back that comes then. */
  #leaving: AbortController | undefined;

  constructor(budget: BodyBudget, organizationId: string) {
    this.#budget = budget;
    this.#organizationId = organizationId;
    this.#decodeWaitLeftMs = budget.decodeWaitMs;
  }

  /**
   * The body grows to so many bytes by that chunk; false where there is no room for it.
   *
   * @param giveWay ends the reading from a sender, gives its bytes back, and refuses the delivery
   */
  grow(bytes: number, chunkBytes: number, giveWay?: () => void): boolean {
    if (bytes <= FREE_BYTES) return true;
    if (giveWay !== undefined && this.#giveWay === undefined) this.#beginReading(giveWay);
    const { room } = this.#budget;
    while (!room.take(this.#organizationId, chunkBytes)) if (!this.#endSlowest()) return false;
    this.#charged += chunkBytes;
    return true;
  }

  #beginReading(giveWay: () => void): void {
    this.#giveWay = giveWay;
    this.#startedAtMs = this.#budget.nowMs();
    const { reading } = this.#budget;
    const others = reading.get(this.#organizationId);
    if (others === undefined) reading.set(this.#organizationId, new Set([this]));
    else others.add(this);
  }

  /** All is read: it can no longer give way. */
  endReading(): void {
    if (this.#giveWay === undefined) return;
    this.#giveWay = undefined;
    const { reading } = this.#budget;
    const others = reading.get(this.#organizationId);
    others?.delete(this);
    if (others?.size === 0) reading.delete(this.#organizationId);
  }

  /** False where its organization's compressed bodies have become as much in the last second as they may, or others wait for that. */
  mayDecode(): boolean {
    const inLine = this.#budget.compressed.get(this.#organizationId)?.inLine ?? 0;
    return inLine === 0 && this.#untilDecodingMs() === 0;
  }

  /** Notes what its compressed body became. */
  decode(bytes: number): void {
    const { decoded, nowMs } = this.#budget;
    decoded.overdraw(this.#organizationId, bytes, this.#decodedPerSecond(), nowMs(), MOST_DEBT_MS);
  }

  #untilDecodingMs(): number {
    const { decoded, nowMs } = this.#budget;
    return decoded.look(this.#organizationId, this.#decodedPerSecond(), nowMs());
  }

  #decodedPerSecond(): number {
    return Math.max(1, this.#budget.bytesOf(this.#organizationId) * DECODED_PART_PER_SECOND);
  }

  /**
   * Waits for room, where the body is large, then for its turn and for the rate. It keeps the room, in the place of what it had, until
   * `release`, and the turn until `endTurn`. False where that takes too long, with what it has waited before, or too many wait.
   */
  async waitToDecode(bytes: number): Promise<boolean> {
    this.#leaveDecoding();
    const { compressed } = this.#budget;
    const others = compressed.get(this.#organizationId) ?? {
      room: createLimiter(DECODED_AT_ONCE_BYTES),
      turns: createLimiter(1),
      decoded: 0,
      waiting: 0,
      inLine: 0,
    };
    if (others.waiting >= MAX_WAITING) return false;
    compressed.set(this.#organizationId, others);
    others.waiting++;
    this.#leaving ??= new AbortController();
    const { nowMs } = this.#budget;
    const beganAtMs = nowMs();
    const tooLong = AbortSignal.timeout(Math.max(0, Math.ceil(this.#decodeWaitLeftMs)));
    const signal = AbortSignal.any([tooLong, this.#leaving.signal]);
    let isInLine = false;
    try {
      using taken = new DisposableStack();
      const room =
        bytes > LARGE_BODY_BYTES ? taken.use(await others.room.acquire(bytes, { signal })) : undefined;
      others.inLine++;
      isInLine = true;
      const turn = taken.use(await others.turns.acquire(1, { signal }));
      for (let waitMs = this.#untilDecodingMs(); waitMs > 0; waitMs = this.#untilDecodingMs()) {
        await sleep(waitMs, signal);
        signal.throwIfAborted();
      }
      signal.throwIfAborted();
      this.#room = room;
      this.#turn = turn;
      taken.move();
      others.decoded++;
      return true;
    } catch {
      return false;
    } finally {
      if (isInLine) others.inLine--;
      others.waiting--;
      this.#decodeWaitLeftMs -= nowMs() - beganAtMs;
      this.#forgetIdle(others);
    }
  }

  /** It has become so many bytes, where it had room for more. A large one keeps its turn until `endTurn`, or for a moment. */
  endDecoding(bytes: number): void {
    this.#room?.shrinkTo(bytes);
    if (this.#room === undefined) this.endTurn();
    else this.#turnEnd = setTimeout(() => this.endTurn(), this.#budget.readMs).unref();
  }

  /** Decoded, and the next one waits until it is read. */
  get keepsTurn(): boolean {
    return this.#turnEnd !== undefined;
  }

  /** It is read: the next one may be decoded. */
  endTurn(): void {
    clearTimeout(this.#turnEnd);
    this.#turnEnd = undefined;
    this.#turn?.[Symbol.dispose]();
  }

  #leaveDecoding(): void {
    const others = this.#budget.compressed.get(this.#organizationId);
    if (this.#turn === undefined || others === undefined) return;
    this.endTurn();
    this.#room?.[Symbol.dispose]();
    this.#turn = undefined;
    this.#room = undefined;
    others.decoded--;
    this.#forgetIdle(others);
  }

  #forgetIdle({ decoded, waiting }: CompressedBodies): void {
    if (decoded === 0 && waiting === 0) this.#budget.compressed.delete(this.#organizationId);
  }

  /** The bytes are no longer there: the request is answered, or only what was decoded of them is left. */
  release(): void {
    this.#leaving?.abort();
    this.#leaveDecoding();
    if (this.#charged === 0) return;
    this.#budget.room.giveBack(this.#organizationId, this.#charged);
    this.#charged = 0;
  }

  #endSlowest(): boolean {
    const nowMs = this.#budget.nowMs();
    let slowest: HeldBody | undefined;
    let leastRate = SLOW_BYTES_PER_SECOND;
    for (const other of this.#budget.reading.get(this.#organizationId) ?? []) {
      const ageMs = nowMs - other.#startedAtMs;
      const rate = (other.#charged / ageMs) * 1_000;
      if (other === this || ageMs < RATED_AFTER_MS || rate >= leastRate) continue;
      slowest = other;
      leastRate = rate;
    }
    if (slowest === undefined) return false;
    slowest.#giveWay?.();
    return true;
  }
}
