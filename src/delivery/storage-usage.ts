import { OTHER } from "../metrics/channel-counts.ts";

/** Storage used by an organization. */
export interface StorageUsage {
  /** Id of the organization, or `other` for the sum of all organizations without their own entry. */
  readonly organization: string;
  readonly bytes: number;
  /** `undefined` when there is no limit, and for `other`. */
  readonly limit: number | undefined;
}

/**
 * Returns the usage of `most` organizations: those nearest to their limits, then the largest ones. The last element is the sum of all
 * others.
 */
export function nearestLimits(usages: readonly StorageUsage[], most: number): readonly StorageUsage[] {
  const ranked = usages.toSorted((a, b) => partOf(b) - partOf(a) || b.bytes - a.bytes);
  const bytes = ranked.slice(most).reduce((sum, one) => sum + one.bytes, 0);
  return [...ranked.slice(0, most), { organization: OTHER, bytes, limit: undefined }];
}

const partOf = ({ bytes, limit }: StorageUsage): number => (limit === undefined ? 0 : bytes / limit);
