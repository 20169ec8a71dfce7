/** Room that several share, such as bytes of memory: one that uses up its part leaves the others theirs. */
export interface FairBudget<K> {
  /** Takes so much more for one of them; false, and nothing is taken, where it has no room for it. */
  readonly take: (who: K, amount: number) => boolean;
  /** Gives back some of what it has taken. */
  readonly giveBack: (who: K, amount: number) => void;
}

/**
 * One of them has room while the total is not used up, for half of it at most; and always for its fair share: the total, divided by
 * those that hold something. So others that came before may have left nothing, and it is not refused for it; all together may hold
 * more than the total, by a part that grows as the logarithm of their number.
 */
export function createFairBudget<K>(total: number): FairBudget<K> {
  const held = new Map<K, number>();
  let sum = 0;
  return {
    take(who, amount) {
      const before = held.get(who);
      const after = (before ?? 0) + amount;
      const sharing = Math.max(2, held.size + (before === undefined ? 1 : 0));
      if (after > total / sharing && (after > total / 2 || sum + amount > total)) return false;
      held.set(who, after);
      sum += amount;
      return true;
    },
    giveBack(who, amount) {
      const left = (held.get(who) ?? 0) - amount;
      if (left > 0) held.set(who, left);
      else held.delete(who);
      sum -= amount;
    },
  };
}
