/**
 * A budget that several owners share, such as bytes of memory. An owner that reaches its limit does not affect the other owners.
 */
export interface FairBudget<K> {
  /** Reserves an amount for an owner. Returns false and reserves nothing if the owner would exceed its limit. */
  readonly take: (who: K, amount: number) => boolean;
  readonly giveBack: (who: K, amount: number) => void;
}

/**
 * Creates a fair budget. While the total is not exhausted, each holder can reserve up to half of it. After that, each holder can
 * still reserve its fair share, which is the total divided by the number of holders. A new holder can always reserve one amount of
 * any size.
 *
 * All holders together can therefore exceed the total. The excess grows with the logarithm of their number.
 *
 * @param mostOf returns a holder's limit, or `undefined` for half of the total. A limit below the fair share also replaces the
 *   fair share
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
