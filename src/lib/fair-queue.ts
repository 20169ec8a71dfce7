/** A queue in which those who wait take turns: however much one has put in, the next thing of another is no later for it. */
export class FairQueue<K, T> {
  /** In the order of their turns. */
  readonly #waiting = new Map<K, { items: (T | undefined)[]; taken: number }>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Behind all that the same one has put in before. */
  push(who: K, item: T): void {
    const line = this.#waiting.get(who);
    if (line === undefined) this.#waiting.set(who, { items: [item], taken: 0 });
    else line.items.push(item);
    this.#size++;
  }

  /** The one whose turn it is; undefined where nothing waits. */
  peek(): T | undefined {
    for (const { items, taken } of this.#waiting.values()) return items[taken];
    return undefined;
  }

  shift(): T | undefined {
    for (const [who, line] of this.#waiting) {
      const item = line.items[line.taken];
      // The line must not keep what it has given.
      line.items[line.taken++] = undefined;
      this.#size--;
      const isLast = line.taken === line.items.length;
      if (isLast || this.#waiting.size > 1) this.#waiting.delete(who);
      if (isLast) return item;
      this.#waiting.set(who, line);
      // Nor may one that never ends grow for ever.
      if (line.taken === COMPACT_AFTER) {
        line.items.splice(0, line.taken);
        line.taken = 0;
      }
      return item;
    }
    return undefined;
  }

  /** Takes all, in their turns. */
  *drain(): Generator<T, void> {
    while (this.#size > 0) {
      const item = this.shift();
      if (item !== undefined) yield item;
    }
  }
}

const COMPACT_AFTER = 1_024;
