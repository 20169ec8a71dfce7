import { type Budget, type Budgets, ownBudgets } from "../../limits/budgets.ts";
import { ownRates, type Rates } from "../../limits/shared-rates.ts";
import { createDecodeLimits, type DecodeLimits, DecodeTurn } from "./decode-turn.ts";

/** Memory limit for all request bodies of a machine, in bytes. A body counts until its response is sent. */
const MAX_BODIES_BYTES = 256 * 1024 * 1024;
export const DEFAULT_BODY_BYTES = MAX_BODIES_BYTES / 2;
/** Number of bytes of each body that do not count against the memory limit, so that small bodies are accepted even at the limit. */
const FREE_BYTES = 64 * 1024;
/**
 * Bodies that arrive at least this fast are never rejected as slow. At a lower rate, a 25 MiB body would exceed the request timeout anyway.
 */
const SLOW_BYTES_PER_SECOND = 400 * 1024;
/** Minimum age at which the transfer rate of a body is measured. The rate of a younger body would be too inaccurate. */
const MIN_RATED_AGE_MS = 2_000;

export interface BodyBudget {
  readonly room: Budget;
  /** Bodies that are still arriving, by organization. At its memory limit, an organization loses its slowest body. */
  readonly reading: Map<string, Set<HeldBody>>;
  readonly decoding: DecodeLimits;
  readonly nowMs: () => number;
}

interface BodyBudgetOptions {
  readonly totalBytes?: number;
  /** Monotonic clock, in milliseconds. */
  readonly nowMs?: () => number;
  /** Returns the memory limit of an organization in bytes. `undefined` stands for half of the total limit. */
  readonly bytesOf?: (organizationId: string) => number | undefined;
  /** Budgets and rates that all processes of this machine share. */
  readonly budgets?: Budgets;
  readonly rates?: Rates;
}

export function createBodyBudget({
  totalBytes = MAX_BODIES_BYTES,
  nowMs = () => performance.now(),
  bytesOf = () => undefined,
  budgets = ownBudgets,
  rates = ownRates,
}: BodyBudgetOptions = {}): BodyBudget {
  const onShortage = (organizationId: string): void => void rejectSlowest(budget, organizationId);
  const budget: BodyBudget = {
    room: budgets.open("bodies", { total: totalBytes, limitOf: bytesOf, onShortage }),
    reading: new Map(),
    decoding: createDecodeLimits({ bytesOf: (id) => bytesOf(id) ?? totalBytes / 2, nowMs, rates }),
    nowMs,
  };
  return budget;
}

/** Rejects the slowest of an organization's bodies. Returns false if all are fast or young. */
function rejectSlowest({ reading, nowMs }: BodyBudget, organizationId: string, except?: HeldBody): boolean {
  const now = nowMs();
  let slowest: HeldBody | undefined;
  let leastRate = SLOW_BYTES_PER_SECOND;
  for (const body of reading.get(organizationId) ?? []) {
    const rate = body === except ? undefined : body.bytesPerSecond(now);
    if (rate === undefined || rate >= leastRate) continue;
    slowest = body;
    leastRate = rate;
  }
  slowest?.reject();
  return slowest !== undefined;
}

/** The memory that one request body counts against its organization's limit, from its first byte until the response is sent. */
export class HeldBody {
  readonly #budget: BodyBudget;
  readonly #organizationId: string;
  #charged = 0;
  #startedAtMs = 0;
  #rejectSlow: (() => void) | undefined;
  /** Exists only for a compressed body. */
  #decodeTurn: DecodeTurn | undefined;
  /** Whether the sender is paused until the supervisor grants memory. */
  #isWaiting = false;
  #releases = 0;

  constructor(budget: BodyBudget, organizationId: string) {
    this.#budget = budget;
    this.#organizationId = organizationId;
  }

  /**
   * Counts another chunk of the body against the memory limit. Returns false if the limit is reached, and a promise if the supervisor has
   * to be asked.
   *
   * @param bytes size of the body so far, including this chunk
   * @param rejectSlow stops reading from the sender, releases the charged bytes and rejects the delivery
   */
  grow(bytes: number, chunkBytes: number, rejectSlow?: () => void): boolean | Promise<boolean> {
    if (bytes <= FREE_BYTES) return true;
    if (rejectSlow !== undefined && this.#rejectSlow === undefined) this.#beginReading(rejectSlow);
    const { room } = this.#budget;
    let taken = room.take(this.#organizationId, chunkBytes);
    while (taken === false) {
      if (!rejectSlowest(this.#budget, this.#organizationId, this)) return false;
      taken = room.take(this.#organizationId, chunkBytes);
    }
    if (taken !== true) return this.#growLater(taken, chunkBytes);
    this.#charged += chunkBytes;
    return true;
  }

  async #growLater(taken: Promise<boolean>, chunkBytes: number): Promise<boolean> {
    const releases = this.#releases;
    this.#isWaiting = true;
    const isTaken = await taken;
    this.#isWaiting = false;
    if (!isTaken) return false;
    this.#charged += chunkBytes;
    if (releases === this.#releases) return true;
    // The request ended meanwhile.
    this.release();
    return false;
  }

  /** Returns `undefined` for a body that is too young to be rated, or that waits for the supervisor. */
  bytesPerSecond(nowMs: number): number | undefined {
    const ageMs = nowMs - this.#startedAtMs;
    return this.#isWaiting || ageMs < MIN_RATED_AGE_MS ? undefined : (this.#charged / ageMs) * 1_000;
  }

  /** Ends a body that is still arriving. */
  reject(): void {
    this.#rejectSlow?.();
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

  get decodeTurn(): DecodeTurn {
    this.#decodeTurn ??= new DecodeTurn(this.#budget.decoding, this.#organizationId);
    return this.#decodeTurn;
  }

  /** Called after this body has been parsed. */
  endParsing(): void {
    this.#decodeTurn?.releaseLock();
  }

  /** Frees all memory that this body counts. Called after the response was sent, or when only the decompressed copy is still needed. */
  release(): void {
    this.#decodeTurn?.end();
    this.#releases++;
    if (this.#charged === 0) return;
    this.#budget.room.giveBack(this.#organizationId, this.#charged);
    this.#charged = 0;
  }
}
