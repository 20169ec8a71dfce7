import { conflict, invalidParameters } from "../../../http/errors.ts";
import { conflictIfTaken } from "../../kit/conflicts.ts";
import type { Kit, RowDeps } from "../../kit/resource-spec.ts";
import { defineRoute } from "../../kit/route.ts";
import { standardResource } from "../../kit/standard-resource.ts";
import { toE164 } from "./e164.ts";
import { requireAssigned, requireChangeable, requireTrunk } from "./queries.ts";
import { assignInput, phoneNumber, registerInputOf, unassignInput } from "./schema.ts";

export interface PhoneNumberDeps extends RowDeps {
  /** Names of the configured carriers. */
  readonly sipProviders: readonly string[];
}

const post = { method: "post", answer: phoneNumber.entity } as const;
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
  more: ({ db, sipProviders }: PhoneNumberDeps, { answer, insert, change }: Kit<typeof phoneNumber>) => [
    defineRoute(
      {
        ...post,
        path: "/register",
        operation: "registerPhoneNumber",
        summary: "Register a phone number",
        description:
          "Registers a number for the caller's organization and assigns it. The number must be valid in its country and not registered by any organization.",
        body: registerInputOf(sipProviders),
        creates: true,
        missing: "the SIP trunk does not exist",
        conflict: "the number is already registered by this or another organization",
      },
      async ({ caller, body: { countryCode, phoneNumber, sipProvider, sipTrunkId: trunkId } }) => {
        const e164 = await toE164(countryCode, phoneNumber);
        if (!e164.ok) throw invalidParameters([e164.error]);
        const registered = db.transaction().execute(async (trx) => {
          await requireTrunk(trx, caller, trunkId, sipProvider);
          const number = { countryCode, e164: e164.value, trunkId, assigned: true };
          return answer(trx, caller, await insert(trx, caller, {}, { ...number, ...NOT_IN_SERVICE }));
        });
        return conflictIfTaken("The phone number is already registered.", registered);
      },
    ),
    defineRoute(
      {
        ...post,
        path: "/assign",
        operation: "assignPhoneNumber",
        summary: "Assign a phone number",
        description: "Assigns an unassigned number to the organization that registered it.",
        body: assignInput,
        missing,
        conflict: "the number is already assigned",
      },
      ({ caller, body: { phoneNumberId, channelId } }) =>
        change(caller, phoneNumberId, ({ before }) => {
          if (before.assigned) throw conflict("The phone number is already assigned.");
          return { assigned: true, channelId };
        }),
    ),
    defineRoute(
      {
        ...post,
        path: "/unassign",
        operation: "unassignPhoneNumber",
        summary: "Unassign a phone number",
        description:
          "Removes the organization and the channel from the number, but keeps its trunk. Only the organization that registered the number can still see it and assign it again.",
        body: unassignInput,
        missing,
        conflict: "the number is not assigned",
      },
      ({ caller, body: { phoneNumberId } }) =>
        change(caller, phoneNumberId, ({ before }) => {
          requireAssigned(before);
          return { assigned: false, ...NOT_IN_SERVICE };
        }),
    ),
  ],
});
