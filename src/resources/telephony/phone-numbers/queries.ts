import type { Trx } from "../../../data/database.ts";
import type { Row } from "../../../data/tables.ts";
import type { Caller } from "../../../http/context.ts";
import { conflict, invalidParameters } from "../../../http/errors.ts";
import { getRow } from "../../kit/references.ts";

const TRUNKS = { table: "sipTrunks", prefix: "trk", words: "SIP trunk" } as const;

type PhoneNumberRow = Row<"phoneNumbers">;

/**
 * Reads the SIP trunk and locks it until the transaction ends.
 * @throws ApiError 404 if it does not exist; 400 if it belongs to another carrier
 */
export async function requireTrunk(trx: Trx, caller: Caller, id: string, sipProvider: string): Promise<void> {
  const trunk = await getRow(trx, caller, TRUNKS, id, "share");
  if (trunk.sipProvider !== sipProvider) throw unlikeTrunk("sipProvider");
}

/**
 * Checks that a phone number can change.
 * @throws ApiError 404 for an unknown trunk; 400 for another carrier's trunk; 409 if the number is not assigned
 */
export async function requireChangeable(
  trx: Trx,
  caller: Caller,
  before: PhoneNumberRow,
  { trunkId }: { readonly trunkId: string },
): Promise<void> {
  if (trunkId !== before.trunkId) {
    const next = await getRow(trx, caller, TRUNKS, trunkId, "share");
    // Read without a lock, because a trunk with phone numbers cannot change its carrier.
    const present = await getRow(trx, caller, TRUNKS, before.trunkId);
    if (next.sipProvider !== present.sipProvider) throw unlikeTrunk("trunkId");
  }
  requireAssigned(before);
}

/** Checks that the phone number is assigned. @throws ApiError 409 if not */
export function requireAssigned({ assigned }: PhoneNumberRow): void {
  if (!assigned) throw conflict("The phone number is not assigned.");
}

const unlikeTrunk = (path: string) =>
  invalidParameters([{ path, message: "must have the same carrier as the SIP trunk" }]);
