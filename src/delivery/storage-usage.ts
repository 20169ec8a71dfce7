import { OTHER } from "../metrics/channel-counts.ts";

/** What an organization holds. */
export interface StorageUsage {
  /** Or `other`: all that are not named themselves. */
  readonly organization: string;
  readonly bytes: number;
  /** Undefined: it has none; nor have the others together. */
  readonly limit: number | undefined;
}

/** Those that are nearest to their limits, then those that hold most; the rest as one, at the end. */
export function nearestLimits(usages: readonly StorageUsage[], most: number): readonly StorageUsage[] {
  const ranked = usages.toSorted((a, b) => partOf(b) - partOf(a) || b.bytes - a.bytes);
  const bytes = ranked.slice(most).reduce((sum, one) => sum + one.bytes, 0);
  return [...ranked.slice(0, most), { organization: OTHER, bytes, limit: undefined }];
}

const partOf = ({ bytes, limit }: StorageUsage): number => (limit === undefined ? 0 : bytes / limit);
