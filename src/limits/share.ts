/** One of several equal parts of a limit. */
export interface Share {
  /** From 0. */
  readonly index: number;
  readonly count: number;
}

export const ONLY_SHARE: Share = { index: 0, count: 1 };

/** Returns a share of a whole number. The shares add up to `total`, but each share is at least 1. */
export const takeShare = (total: number, { index, count }: Share): number =>
  Math.max(1, Math.floor(total / count) + (index < total % count ? 1 : 0));
