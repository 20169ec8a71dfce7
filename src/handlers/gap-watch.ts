import { compareEntryIds, idPreceding } from "../bus/entry-id.ts";
import type { TopicPosition, TopicReader } from "../bus/topics/read-after.ts";

/** Called with each entry of a topic, in order, before it is handled. Can be called again for the same entry. */
export type GapWatch = (topic: string, entryId: string) => Promise<void>;

interface Handled {
  readonly entryId: string;
  /** Number of entries that were appended up to this one. `undefined` if it is not known yet. */
  readonly appended: number | undefined;
}

/**
 * Notices entries that were removed from a topic before a consumer group read them. Redis reports only removed entries that the group had
 * already read.
 *
 * @param onGap called with the position after the removed entries
 */
export function createGapWatch(
  { findRemoved }: Pick<TopicReader, "findRemoved">,
  onGap: (position: TopicPosition) => void,
): GapWatch {
  const lastOf = new Map<string, Handled>();
  return async (topic, entryId) => {
    const last = lastOf.get(topic);
    if (last !== undefined && compareEntryIds(entryId, last.entryId) <= 0) return;
    const { count, firstStored, maxDeleted } = await findRemoved(topic);
    // Trimming removes the oldest entries first. The number of removed entries is therefore the number of entries before the first one.
    const before = firstStored === entryId ? count : undefined;
    if (last !== undefined) {
      const isTrimmed = before !== undefined && (last.appended === undefined || before > last.appended);
      const isDeleted =
        compareEntryIds(maxDeleted, last.entryId) > 0 && compareEntryIds(maxDeleted, entryId) < 0;
      if (isTrimmed || isDeleted) onGap({ after: idPreceding(entryId), appended: before });
    }
    const preceding = before ?? last?.appended;
    lastOf.set(topic, { entryId, appended: preceding === undefined ? undefined : preceding + 1 });
  };
}
