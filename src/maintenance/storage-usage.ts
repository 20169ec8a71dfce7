import { OTHER } from "../metrics/channel-counts.ts";

export interface StorageUsage {
  /** Organization id, or `other` for the sum of all organizations without a separate entry. */
  readonly organization: string;
  readonly bytes: number;
  /** Storage limit in bytes. `undefined` for `other` and for organizations without a limit. */
  readonly limit: number | undefined;
}

/** Returns the usage of `most` organizations, starting with those nearest to their limits. The last element is the sum of all others. */
export function nearestLimits(usages: readonly StorageUsage[], most: number): readonly StorageUsage[] {
  const ranked = usages.toSorted((a, b) => partOf(b) - partOf(a) || b.bytes - a.bytes);
  const bytes = ranked.slice(most).reduce((sum, one) => sum + one.bytes, 0);
  return [...ranked.slice(0, most), { organization: OTHER, bytes, limit: undefined }];
}

const partOf = ({ bytes, limit }: StorageUsage): number => (limit === undefined ? 0 : bytes / limit);
