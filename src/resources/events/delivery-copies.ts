import type { DeliveryRecords } from "../../bus/deliveries/delivery-records.ts";
import type { DeliveryRecord } from "../../event/delivery-record.ts";

/**
 * Deletes delivery records that contain the given item, for privacy. Records with an incomplete item list are deleted
 * too, because they may contain the item.
 * @throws UnavailableError
 */
export const deleteCopiesOfItem = (
  records: Pick<DeliveryRecords, "list" | "read" | "delete">,
  channel: Pick<DeliveryRecord, "organizationId" | "channelNumber">,
  itemId: string,
): Promise<void> =>
  deleteCopies(records, channel, async (ids) => {
    const read = await records.read(channel.organizationId, ids);
    return read
      .filter(
        ({ outcome: { quarantine, quarantined } }) =>
          quarantine.length < quarantined || quarantine.some(({ id }) => id === itemId),
      )
      .map(({ id }) => id);
  });

/** Deletes delivery records of a channel. `choose` returns the ids of the records to delete. @throws UnavailableError */
export async function deleteCopies(
  records: Pick<DeliveryRecords, "list" | "delete">,
  { organizationId, channelNumber }: Pick<DeliveryRecord, "organizationId" | "channelNumber">,
  choose: (ids: readonly string[]) => Promise<readonly string[]>,
): Promise<void> {
  // An empty deletion still marks the time of deletion, so that deliveries received before the mark are not recorded later.
  await records.delete(organizationId, channelNumber, []);
  const listed = await records.list(organizationId, [channelNumber]);
  await records.delete(organizationId, channelNumber, await choose(listed.map(({ id }) => id)));
}
