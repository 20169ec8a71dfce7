import { createFairBudget, type FairBudget } from "../lib/fair-budget.ts";
import { createRateBuckets, type RateBuckets } from "../lib/rate-buckets.ts";

/** All bodies of deliveries that a gateway has at once, from their first bytes until they are answered. */
const MAX_BODIES_BYTES = 256 * 1024 * 1024;
/** Of them those of one organization. */
export const DEFAULT_BODY_BYTES = MAX_BODIES_BYTES / 2;
/** So much of each body is not charged: small ones pass also where there is no room. */
const FREE_BYTES = 64 * 1024;
/** A body of 25 MiB that comes slower is not there when its request ends (listener.ts). */
const SLOW_BYTES_PER_SECOND = 400 * 1024;
/** What is decoded is counted in such pieces. */
const DECODED_PIECE_BYTES = 64 * 1024;
/** The rate of a body says nothing before. */
const RATED_AFTER_MS = 2_000;

/** The room of bodies, shared by organizations. */
export interface BodyBudget {
  readonly room: FairBudget<string>;
  /** Bodies that are being read, by organization: those whose sender is slow give way. */
  readonly reading: Map<string, Set<HeldBody>>;
  /** What each organization has had decoded: few bytes that come quickly may become many that take the gateway's own thread. */
  readonly decoded: RateBuckets<string>;
  /** Bytes that an organization may have, of compressed bodies in each second too. */
  readonly bytesOf: (organizationId: string) => number;
  readonly nowMs: () => number;
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
  /** Bytes of the piece that is being decoded. */
  #piece = 0;

  constructor(budget: BodyBudget, organizationId: string) {
    this.#budget = budget;
    this.#organizationId = organizationId;
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

  /** False where its organization's compressed bodies have become as much in the last second as they may. */
  mayDecode(): boolean {
    const { decoded, nowMs } = this.#budget;
    return decoded.look(this.#organizationId, this.#piecesPerSecond(), nowMs()) === 0;
  }

  /** Notes what its compressed body became. */
  decode(bytes: number): void {
    const { decoded, nowMs } = this.#budget;
    for (this.#piece += bytes; this.#piece >= DECODED_PIECE_BYTES; this.#piece -= DECODED_PIECE_BYTES)
      decoded.take(this.#organizationId, this.#piecesPerSecond(), nowMs());
  }

  #piecesPerSecond(): number {
    return Math.max(1, this.#budget.bytesOf(this.#organizationId) / DECODED_PIECE_BYTES);
  }

  /** The bytes are no longer there: the request is answered, or only what was decoded of them is left. */
  release(): void {
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
