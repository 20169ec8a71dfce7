/** A queue in which those who wait take turns: however much one has put in, the next thing of another is no later for it. */
export class FairQueue<K, T> {
  readonly #lines = new Map<K, Line<K, T>>();
  /** Those who wait, in the order of their turns; those before `#turn` have had theirs. */
  #turns: (Line<K, T> | undefined)[] = [];
  #turn = 0;
  #aside: Line<K, T>[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Behind all that the same one has put in before. */
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

  /** The one whose turn it is; undefined where nothing waits, or all is set aside. */
  peek(): T | undefined {
    const line = this.#turns[this.#turn];
    return line?.items[line.taken];
  }

  shift(): T | undefined {
    const line = this.#turns[this.#turn];
    if (line === undefined) return undefined;
    const item = line.items[line.taken];
    // The line must not keep what it has given.
    line.items[line.taken++] = undefined;
    this.#size--;
    const isLast = line.taken === line.items.length;
    if (isLast) this.#lines.delete(line.who);
    if (isLast || this.#lines.size > 1) {
      this.#turns[this.#turn++] = undefined;
      if (!isLast) this.#turns.push(line);
    }
    // Nor may what never ends grow for ever.
    if (line.taken === COMPACT_AFTER) {
      line.items.splice(0, line.taken);
      line.taken = 0;
    }
    this.#compact();
    return item;
  }

  /** Lets those behind the one whose turn it is go on without it, until `bringBack`. */
  setAside(): void {
    const line = this.#turns[this.#turn];
    if (line === undefined) return;
    this.#turns[this.#turn++] = undefined;
    this.#aside.push(line);
    this.#compact();
  }

  /** What was set aside has its turn again, before all others. */
  bringBack(): void {
    this.#turns.splice(this.#turn, 0, ...this.#aside);
    this.#aside = [];
  }

  #compact(): void {
    if (this.#turn !== this.#turns.length && this.#turn !== COMPACT_AFTER) return;
    this.#turns.splice(0, this.#turn);
    this.#turn = 0;
  }

  /** Takes all, in their turns. */
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
