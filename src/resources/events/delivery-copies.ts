import type { DeliveryRecords } from "../../bus/deliveries/delivery-records.ts";
import type { DeliveryRecord, WholeDeliveryRecord } from "../../event/delivery-record.ts";
import type { VerifiedDelivery } from "../../event/received.ts";

export const deliveryOf = ({ record, body }: WholeDeliveryRecord): VerifiedDelivery => ({
  method: record.method,
  headers: record.headers,
  query: record.query,
  body: body ?? Buffer.alloc(0),
  arrivedAtMs: record.receivedAtMs,
  ...(record.verification.deliveryId !== null && { deliveryId: record.verification.deliveryId }),
});

/**
 * Deletes the delivery records that contain a quarantined item, when the item is deleted for privacy. Records that do not
 * list all their quarantined items are deleted too, because they may contain the item.
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

/** Deletes the records of a channel whose ids `choose` returns. @throws UnavailableError */
export async function deleteCopies(
  records: Pick<DeliveryRecords, "list" | "delete">,
  { organizationId, channelNumber }: Pick<DeliveryRecord, "organizationId" | "channelNumber">,
  choose: (ids: readonly string[]) => Promise<readonly string[]>,
): Promise<void> {
  // Even an empty deletion sets a mark, so that older deliveries still in flight are not recorded afterwards.
  await records.delete(organizationId, channelNumber, []);
  const listed = await records.list(organizationId, [channelNumber]);
  await records.delete(organizationId, channelNumber, await choose(listed.map(({ id }) => id)));
}
