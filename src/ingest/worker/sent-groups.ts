import type { VerifiedDelivery } from "../../event/received.ts";
import { type DeliveryPart, type Routed, type RouteGroup, toPart } from "../../normalize/route-items.ts";

/** A group without its delivery. `part` is `undefined` if the group contains all items of the delivery. */
interface SentGroup extends Omit<RouteGroup, "delivery"> {
  readonly part?: Omit<DeliveryPart, "body"> & { readonly start: number; readonly end: number };
}

export type SentRouted =
  | Exclude<Routed, { kind: "routed" }>
  | {
      readonly kind: "routed";
      readonly received: number;
      readonly groups: readonly SentGroup[];
      /** The bodies of all parts, which are transferred together. */
      readonly bodies: Uint8Array<ArrayBuffer>;
    };

/** Converts the groups of a delivery for the transfer to another thread, and returns the buffers to transfer. */
export function toSentRouted(
  routed: Routed,
  whole: VerifiedDelivery,
): readonly [SentRouted, readonly ArrayBuffer[]] {
  if (routed.kind !== "routed") return [routed, []];
  const parts = routed.groups.filter(({ delivery }) => delivery !== whole);
  const bodies = Buffer.allocUnsafeSlow(parts.reduce((sum, { delivery }) => sum + delivery.body.length, 0));
  let end = 0;
  const groups = routed.groups.map(({ delivery, ...group }): SentGroup => {
    if (delivery === whole) return group;
    const start = end;
    end += delivery.body.copy(bodies, start);
    const { deliveryId, boundTo } = delivery;
    const contentType = String(delivery.headers["content-type"]);
    return { ...group, part: { contentType, deliveryId, boundTo, start, end } };
  });
  return [{ kind: "routed", received: routed.received, groups, bodies }, [bodies.buffer]];
}

/** Restores the groups of a delivery. All parts share one buffer. */
export function fromSentRouted(sent: SentRouted, whole: VerifiedDelivery): Routed {
  if (sent.kind !== "routed") return sent;
  const { buffer } = sent.bodies;
  const groups = sent.groups.map(({ part, ...group }): RouteGroup => {
    if (part === undefined) return { ...group, delivery: whole };
    const { start, end, ...values } = part;
    return {
      ...group,
      delivery: toPart(whole, { ...values, body: Buffer.from(buffer, start, end - start) }),
    };
  });
  return { kind: "routed", received: sent.received, groups };
}
