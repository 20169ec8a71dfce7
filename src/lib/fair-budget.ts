/** Room that several share, such as bytes of memory: one that uses up its part leaves the others theirs. */
export interface FairBudget<K> {
  /** Takes so much more for one of them; false, and nothing is taken, where it has no room for it. */
  readonly take: (who: K, amount: number) => boolean;
  /** Gives back some of what it has taken. */
  readonly giveBack: (who: K, amount: number) => void;
}

/**
 * One of them has room while the total is not used up, for half of it at most; and always for its fair share: the total, divided by
 * those that hold something. One that holds nothing has room for one thing, however large. So it is not refused for what others hold;
 * all together may hold more than the total, by a part that grows as the logarithm of their number.
 *
 * @param mostOf what one may have in the place of that half; undefined: the half. Where it is less than its fair share, it is its share.
 */
export function createFairBudget<K>(
  total: number,
  mostOf: (who: K) => number | undefined = () => undefined,
): FairBudget<K> {
  const held = new Map<K, number>();
  let sum = 0;
  return {
    take(who, amount) {
      const before = held.get(who);
      if (before !== undefined) {
        const most = mostOf(who);
        const isFairShare = before + amount <= Math.min(total / Math.max(2, held.size), most ?? total);
        if (!isFairShare && (before + amount > (most ?? total / 2) || sum + amount > total)) return false;
      }
      held.set(who, (before ?? 0) + amount);
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
