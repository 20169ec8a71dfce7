import type { Trx } from "../../../data/database.ts";
import type { Row } from "../../../data/tables.ts";
import type { Caller } from "../../../http/context.ts";
import { conflict, invalidParameters } from "../../../http/problem.ts";
import type { RowDeps } from "../../kit/owned-rows.ts";
import { ownedRows } from "../../kit/owned-rows.ts";
import { refuseTaken } from "../../kit/refusals.ts";
import { toE164 } from "./e164.ts";
import type { RegisterInput } from "./schema.ts";

const rows = ownedRows("phoneNumbers", { prefix: "pn", entity: "phoneNumber", words: "phone number" });
const trunks = ownedRows("sipTrunks", { prefix: "trk", words: "SIP trunk" });

type PhoneNumberRow = Row<"phoneNumbers">;

/**
 * Registers the number for the caller's organization, which has it until it deletes it.
 *
 * @throws ApiError 400 for a number that is none of its country's, or another carrier than the trunk's; 404 without such a
 * trunk; 409 where anybody has the number
 */
export async function registerPhoneNumber(
  { db, clock }: RowDeps,
  caller: Caller,
  { countryCode, phoneNumber, sipProvider, sipTrunkId }: RegisterInput,
): Promise<PhoneNumberRow> {
  const e164 = await toE164(countryCode, phoneNumber);
  if (!e164.ok) throw invalidParameters([e164.error]);
  const registered = db.transaction().execute(async (trx) => {
    // Nobody changes or deletes the trunk until the number is there.
    const trunk = await trunks.lockShared(trx, caller, sipTrunkId);
    if (trunk.sipProvider !== sipProvider) throw unlikeTrunk("sipProvider");
    const content = {
      ...{ countryCode, e164: e164.value, trunkId: trunk.id, channelId: null },
      ...{ assigned: true, status: "pending_activation" as const },
    };
    return rows.insert(trx, caller, content, clock());
  });
  return refuseTaken("The phone number is registered already.", registered);
}

/** Gives the number to its organization again, or takes it away. @throws ApiError 404, and 409 where it is so already */
export async function assignPhoneNumber(
  { db, clock }: RowDeps,
  caller: Caller,
  id: string,
  change: { readonly assigned: true; readonly channelId: string | null } | { readonly assigned: false },
): Promise<PhoneNumberRow> {
  return db.transaction().execute(async (trx) => {
    const row = await rows.lock(trx, caller, id);
    if (!change.assigned) requireAssigned(row);
    else if (row.assigned) throw conflict("The phone number is assigned already.");
    const taken = { channelId: null, status: "pending_activation" as const };
    return rows.update(trx, caller, row, change.assigned ? change : { ...change, ...taken }, clock());
  });
}

/** @throws ApiError 404 without such a trunk, 400 for one of another carrier, 409 where the number is not assigned */
export async function requireChangeable(
  trx: Trx,
  caller: Caller,
  before: PhoneNumberRow,
  { trunkId }: { readonly trunkId: string },
): Promise<void> {
  if (trunkId !== before.trunkId) {
    const next = await trunks.lockShared(trx, caller, trunkId);
    // Not locked: a trunk with numbers keeps its carrier.
    const present = await trunks.get(trx, caller, before.trunkId);
    if (next.sipProvider !== present.sipProvider) throw unlikeTrunk("trunkId");
  }
  requireAssigned(before);
}

function requireAssigned({ assigned }: PhoneNumberRow): void {
  if (!assigned) throw conflict("The phone number is not assigned.");
}

const unlikeTrunk = (path: string) =>
  invalidParameters([{ path, message: "is not of the same carrier as the SIP trunk" }]);
