import type { VerifiedDelivery } from "../../event/received.ts";
import type { FetchedDelivery } from "../source.ts";

const NO_QUERY = Object.freeze(Object.create(null));

/** Converts a delivery that the gateway fetched, which needs no verification. */
export function toVerifiedDelivery(fetched: FetchedDelivery): VerifiedDelivery {
  const delivery = toUntraced(fetched);
  return fetched.fetchedBy === undefined ? delivery : { ...delivery, fetchedBy: fetched.fetchedBy };
}

function toUntraced(fetched: FetchedDelivery): VerifiedDelivery {
  const { arrivedAtMs, body, deliveryId, headers, query = NO_QUERY, reconciled } = fetched;
  if (reconciled !== undefined) return { method: "POST", headers, query, body, arrivedAtMs, reconciled };
  return deliveryId === undefined
    ? { method: "GET", headers, query: NO_QUERY, body, arrivedAtMs }
    : { method: "GET", headers, query: NO_QUERY, body, arrivedAtMs, deliveryId };
}
