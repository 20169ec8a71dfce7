/**
 * Fairness between owners, such as organizations: an owner that asks for too much delays or rejects only its own requests.
 *
 * - `FairQueue` decides who is next.
 * - `FairLimiter` lets requests beyond a limit wait in such a queue.
 * - `FairBudget` rejects requests beyond a limit.
 */

/** A queue that serves its owners round-robin. An owner with many items therefore does not delay the items of other owners. */
export class FairQueue<K, T> {
  readonly #lines = new Map<K, Line<K, T>>();
  /** The item lists of all owners, in round-robin order. Lists before index `#turn` have already been served in this round. */
  #turns: (Line<K, T> | undefined)[] = [];
  #turn = 0;
  #aside: Line<K, T>[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Returns how many items of this owner are waiting. */
  sizeOf(who: K): number {
    const line = this.#lines.get(who);
    return line === undefined ? 0 : line.items.length - line.taken;
  }

  push(who: K, item: T): void {
    let line = this.#lines.get(who);
    if (line === undefined) {
      line = { who, items: [], taken: 0 };
      this.#lines.set(who, line);
      this.#turns.push(line);
    }
    line.items.push(item);
    this.#size++;
  }

  /** Returns the next item without removing it. Returns `undefined` if the queue is empty or every owner is skipped. */
  peek(): T | undefined {
    const line = this.#turns[this.#turn];
    return line?.items[line.taken];
  }

  shift(): T | undefined {
    const line = this.#turns[this.#turn];
    if (line === undefined) return undefined;
    const item = line.items[line.taken];
    // Clear the slot, so that the queue does not keep the removed item in memory.
    line.items[line.taken++] = undefined;
    this.#size--;
    const isLast = line.taken === line.items.length;
    if (isLast) this.#lines.delete(line.who);
    if (isLast || this.#lines.size > 1) {
      this.#turns[this.#turn++] = undefined;
      if (!isLast) this.#turns.push(line);
    }
    // Drop served items from time to time. Otherwise, the array of an owner whose items never run out would grow forever.
    if (line.taken === COMPACT_AFTER) {
      line.items.splice(0, line.taken);
      line.taken = 0;
    }
    this.#compact();
    return item;
  }

  /** Removes an item that no longer needs to be served. */
  remove(who: K, item: T): void {
    const line = this.#lines.get(who);
    const at = line?.items.indexOf(item, line.taken) ?? -1;
    if (line === undefined || at === -1) return;
    line.items.splice(at, 1);
    this.#size--;
    if (line.taken < line.items.length) return;
    this.#lines.delete(who);
    this.#turns = this.#turns.filter((each) => each !== line);
    this.#aside = this.#aside.filter((each) => each !== line);
  }

  /** Skips all items of the current owner until `bringBack` is called. */
  setAside(): void {
    const line = this.#turns[this.#turn];
    if (line === undefined) return;
    this.#turns[this.#turn++] = undefined;
    this.#aside.push(line);
    this.#compact();
  }

  /** Moves the items of all skipped owners back to the front of the queue. */
  bringBack(): void {
    this.#turns.splice(this.#turn, 0, ...this.#aside);
    this.#aside = [];
  }

  #compact(): void {
    if (this.#turn !== this.#turns.length && this.#turn !== COMPACT_AFTER) return;
    this.#turns.splice(0, this.#turn);
    this.#turn = 0;
  }

  *drain(): Generator<T, void> {
    while (this.#size > 0) {
      const item = this.shift();
      if (item !== undefined) yield item;
    }
  }
}

interface Line<K, T> {
  readonly who: K;
  readonly items: (T | undefined)[];
  taken: number;
}

const COMPACT_AFTER = 1_024;

/**
 * Limits the total weight in use at once, such as a number of slots or bytes. Requests beyond the limit wait, and are served
 * round-robin by owner.
 */
export class FairLimiter {
  readonly #total: number;
  readonly #queue = new FairQueue<string, Waiting>();
  #left: number;

  constructor(total: number) {
    this.#total = total;
    this.#left = total;
  }

  /** Number of waiting requests. */
  get waiting(): number {
    return this.#queue.size;
  }

  waitingOf(owner: string): number {
    return this.#queue.sizeOf(owner);
  }

  /** Whether no weight is in use and no request is waiting. */
  get isIdle(): boolean {
    return this.#left === this.#total && this.#queue.size === 0;
  }

  /**
   * Acquires weight. Dispose of the result to release it; further disposals have no effect. A weight above the limit is granted
   * once no other weight is in use. Rejects with the reason of the signal if it aborts first.
   *
   * Requests of the same owner are served in order, and do not delay those of other owners.
   */
  async acquire(
    weight: number,
    { signal, owner = "" }: { readonly signal: AbortSignal; readonly owner?: string },
  ): Promise<HeldWeight> {
    signal.throwIfAborted();
    if (this.#queue.size === 0 && this.#fits(weight)) return this.#take(weight);
    const { promise, resolve, reject } = Promise.withResolvers<HeldWeight>();
    const giveUp = (): void => {
      this.#queue.remove(owner, waiting);
      reject(signal.reason);
      this.#startNext();
    };
    const start = (): void => {
      signal.removeEventListener("abort", giveUp);
      resolve(this.#take(weight));
    };
    const waiting: Waiting = { weight, start };
    signal.addEventListener("abort", giveUp, { once: true });
    this.#queue.push(owner, waiting);
    return promise;
  }

  #fits(weight: number): boolean {
    return weight <= this.#left || this.#left === this.#total;
  }

  #take(weight: number): HeldWeight {
    this.#left -= weight;
    let held = weight;
    const shrinkTo = (kept: number): void => {
      if (kept >= held) return;
      this.#left += held - kept;
      held = kept;
      this.#startNext();
    };
    return { shrinkTo, [Symbol.dispose]: () => shrinkTo(0) };
  }

  #startNext(): void {
    for (let next = this.#queue.peek(); next && this.#fits(next.weight); next = this.#queue.peek()) {
      this.#queue.shift();
      next.start();
    }
  }
}

export interface HeldWeight extends Disposable {
  readonly shrinkTo: (weight: number) => void;
}

interface Waiting {
  readonly weight: number;
  readonly start: () => void;
}

/**
 * A budget that several owners share, such as bytes of memory. While it is not exhausted, each owner can take up to half of it. After
 * that, each owner can still take its fair share, which is the total divided by the number of owners. The first amount
 * that an owner takes can have any size.
 *
 * All owners together can therefore exceed the total. The excess grows with the logarithm of their number.
 */
export class FairBudget<K> {
  readonly #total: number;
  readonly #limitOf: (owner: K) => number | undefined;
  readonly #held = new Map<K, number>();
  #sum = 0;

  /** @param limitOf returns an owner's limit, or `undefined` for half of the total. A limit below the fair share also replaces that share. */
  constructor(total: number, limitOf: (owner: K) => number | undefined = () => undefined) {
    this.#total = total;
    this.#limitOf = limitOf;
  }

  /** Takes an amount for an owner. Returns false and takes nothing if the owner would exceed its limit. */
  take(owner: K, amount: number): boolean {
    const before = this.#held.get(owner);
    if (before !== undefined) {
      const total = this.#total;
      const limit = this.#limitOf(owner);
      const isFairShare = before + amount <= Math.min(total / Math.max(2, this.#held.size), limit ?? total);
      if (!isFairShare && (before + amount > (limit ?? total / 2) || this.#sum + amount > total))
        return false;
    }
    this.#held.set(owner, (before ?? 0) + amount);
    this.#sum += amount;
    return true;
  }

  giveBack(owner: K, amount: number): void {
    const left = (this.#held.get(owner) ?? 0) - amount;
    if (left > 0) this.#held.set(owner, left);
    else this.#held.delete(owner);
    this.#sum -= amount;
  }
}
