import type { WholeDeliveryRecord } from "../event/delivery-record.ts";
import type { VerifiedDelivery } from "../event/received.ts";

/** Returns the delivery of a record, without the secrets that the recorder removed. The body is empty if it was not stored. */
export const toRecordedDelivery = ({ record, body }: WholeDeliveryRecord): VerifiedDelivery => ({
  method: record.method,
  headers: record.headers,
  query: record.query,
  body: body ?? Buffer.alloc(0),
  arrivedAtMs: record.receivedAtMs,
  ...(record.verification.deliveryId !== null && { deliveryId: record.verification.deliveryId }),
});
