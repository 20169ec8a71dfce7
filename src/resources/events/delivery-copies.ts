import type { DeliveryRecords } from "../../bus/deliveries/delivery-records.ts";
import type { DeliveryRecord, WholeDeliveryRecord } from "../../event/delivery-record.ts";
import type { VerifiedDelivery } from "../../event/received.ts";

/** Rebuilds a delivery from its stored record. */
export const deliveryOf = ({ record, body }: WholeDeliveryRecord): VerifiedDelivery => ({
  method: record.method,
  headers: record.headers,
  query: record.query,
  body: body ?? Buffer.alloc(0),
  arrivedAtMs: record.receivedAtMs,
  ...(record.verification.deliveryId !== null && { deliveryId: record.verification.deliveryId }),
});

/**
 * Deletes the delivery records that contain a quarantined item which is being deleted for privacy. Also deletes records of
 * deliveries with more quarantined items than a record lists, because they may contain it.
 *
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

/** Deletes those records of a channel that `choose` returns. @throws UnavailableError */
export async function deleteCopies(
  records: Pick<DeliveryRecords, "list" | "delete">,
  { organizationId, channelNumber }: Pick<DeliveryRecord, "organizationId" | "channelNumber">,
  choose: (ids: readonly string[]) => Promise<readonly string[]>,
): Promise<void> {
  // This empty deletion sets a mark: older deliveries that are still in flight are then not recorded any more.
  await records.delete(organizationId, channelNumber, []);
  const listed = await records.list(organizationId, [channelNumber]);
  await records.delete(organizationId, channelNumber, await choose(listed.map(({ id }) => id)));
}
