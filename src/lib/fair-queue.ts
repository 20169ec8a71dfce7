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
