import type { Trx } from "../../../data/database.ts";
import type { Row } from "../../../data/tables.ts";
import type { Caller } from "../../../http/context.ts";
import { conflict, invalidParameters } from "../../../http/errors.ts";
import { conflictIfTaken } from "../../kit/conflicts.ts";
import { getRow } from "../../kit/references.ts";
import { defineRoute } from "../../kit/route.ts";
import { standardResource } from "../../kit/standard-resource.ts";
import { toE164 } from "./e164.ts";
import { assignInput, phoneNumber, registerInputOf, unassignInput } from "./schema.ts";

const TRUNKS = { table: "sipTrunks", prefix: "trk", words: "SIP trunk" } as const;
const missing = "the phone number does not exist";
const NOT_IN_SERVICE = { channelId: null, status: "pending_activation" } as const;

/** Routes of phone numbers. An unassigned number stays registered to its organization, so no other organization can register it. */
export const phoneNumbers = standardResource({
  path: "/telephony/phone-numbers",
  tag: "Telephony",
  name: "phoneNumber",
  table: "phoneNumbers",
  shape: phoneNumber,
  audit: "phoneNumber",
  inside:
    async () =>
    ({ assigned, organizationId }) => ({ organizationId: assigned ? organizationId : null }),
  async prepare({ trx, caller, before, values }) {
    if (before) await requireChangeable(trx, caller, before, values);
    return {};
  },
  notes: {
    update: { missing: "the number or the trunk does not exist", conflict: "the number is not assigned" },
    delete: { description: "Any organization can then register the number again." },
  },
  without: ["create"],
  more: ({ db, sipProviders }, { answer, insert, change }) => [
    defineRoute({
      at: "POST /telephony/phone-numbers/register",
      operation: "registerPhoneNumber",
      summary: "Register a phone number",
      description:
        "Registers a number for the caller's organization and assigns it. The number must be valid in its country and not registered by any organization.",
      body: registerInputOf(sipProviders),
      answer: phoneNumber.entity,
      creates: true,
      missing: "the SIP trunk does not exist",
      conflict: "the number is already registered by this or another organization",
      async handle({ caller, body: { countryCode, phoneNumber, sipProvider, sipTrunkId: trunkId } }) {
        const e164 = await toE164(countryCode, phoneNumber);
        if (!e164.ok) throw invalidParameters([e164.error]);
        const registered = db.transaction().execute(async (trx) => {
          await requireTrunk(trx, caller, trunkId, sipProvider);
          const number = { countryCode, e164: e164.value, trunkId, assigned: true };
          return answer(trx, caller, await insert(trx, caller, {}, { ...number, ...NOT_IN_SERVICE }));
        });
        return conflictIfTaken("The phone number is already registered.", registered);
      },
    }),
    defineRoute({
      at: "POST /telephony/phone-numbers/assign",
      operation: "assignPhoneNumber",
      summary: "Assign a phone number",
      description: "Assigns an unassigned number to the organization that registered it.",
      body: assignInput,
      answer: phoneNumber.entity,
      missing,
      conflict: "the number is already assigned",
      handle: ({ caller, body: { phoneNumberId, channelId } }) =>
        change(caller, phoneNumberId, ({ before }) => {
          if (before.assigned) throw conflict("The phone number is already assigned.");
          return { assigned: true, channelId };
        }),
    }),
    defineRoute({
      at: "POST /telephony/phone-numbers/unassign",
      operation: "unassignPhoneNumber",
      summary: "Unassign a phone number",
      description:
        "Removes the organization and the channel from the number, but keeps its trunk. Only the organization that registered the number can still see it and assign it again.",
      body: unassignInput,
      answer: phoneNumber.entity,
      missing,
      conflict: "the number is not assigned",
      handle: ({ caller, body: { phoneNumberId } }) =>
        change(caller, phoneNumberId, ({ before }) => {
          requireAssigned(before);
          return { assigned: false, ...NOT_IN_SERVICE };
        }),
    }),
  ],
});

/**
 * Reads the SIP trunk and locks it until the transaction ends.
 * @throws ApiError 404 if it does not exist; 400 if it belongs to another carrier
 */
async function requireTrunk(trx: Trx, caller: Caller, id: string, sipProvider: string): Promise<void> {
  const trunk = await getRow(trx, caller, TRUNKS, id, "share");
  if (trunk.sipProvider !== sipProvider) throw unlikeTrunk("sipProvider");
}

/**
 * Checks that a phone number can change.
 * @throws ApiError 404 for an unknown trunk; 400 for another carrier's trunk; 409 if the number is not assigned
 */
async function requireChangeable(
  trx: Trx,
  caller: Caller,
  before: Row<"phoneNumbers">,
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
function requireAssigned({ assigned }: Row<"phoneNumbers">): void {
  if (!assigned) throw conflict("The phone number is not assigned.");
}

const unlikeTrunk = (path: string) =>
  invalidParameters([{ path, message: "must have the same carrier as the SIP trunk" }]);
