import { conflict, invalidParameters } from "../../../http/problem.ts";
import { conflictIfTaken } from "../../kit/conflicts.ts";
import type { Kit, RowDeps } from "../../kit/resource-spec.ts";
import { defineRoute } from "../../kit/route.ts";
import { standardResource } from "../../kit/standard-resource.ts";
import { toE164 } from "./e164.ts";
import { requireAssigned, requireChangeable, requireTrunk } from "./queries.ts";
import { assignInput, phoneNumber, registerInputOf, unassignInput } from "./schema.ts";

export interface PhoneNumberDeps extends RowDeps {
  /** The carriers that there are, by name. */
  readonly sipProviders: readonly string[];
}

const post = { method: "post", answer: phoneNumber.entity } as const;
const missing = "the phone number is not there";
const NOT_IN_SERVICE = { channelId: null, status: "pending_activation" } as const;

/** Phone numbers, each registered by one organization in all, and assigned to it or not. */
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
    update: { missing: "number or trunk is not there", conflict: "the number is not assigned" },
    delete: { description: "It can be registered anew, by anybody." },
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
          "It must be a valid number of its country, and nobody else's. It is assigned to the caller's organization.",
        body: registerInputOf(sipProviders),
        creates: true,
        missing: "the SIP trunk is not there",
        conflict: "the number is registered already, here or elsewhere",
      },
      async ({ caller, body: { countryCode, phoneNumber, sipProvider, sipTrunkId: trunkId } }) => {
        const e164 = await toE164(countryCode, phoneNumber);
        if (!e164.ok) throw invalidParameters([e164.error]);
        const registered = db.transaction().execute(async (trx) => {
          await requireTrunk(trx, caller, trunkId, sipProvider);
          const number = { countryCode, e164: e164.value, trunkId, assigned: true };
          return answer(trx, caller, await insert(trx, caller, {}, { ...number, ...NOT_IN_SERVICE }));
        });
        return conflictIfTaken("The phone number is registered already.", registered);
      },
    ),
    defineRoute(
      {
        ...post,
        path: "/assign",
        operation: "assignPhoneNumber",
        summary: "Assign a phone number",
        description: "Gives a number that was unassigned back to the organization that has registered it.",
        body: assignInput,
        missing,
        conflict: "the number is assigned already",
      },
      ({ caller, body: { phoneNumberId, channelId } }) =>
        change(caller, phoneNumberId, ({ before }) => {
          if (before.assigned) throw conflict("The phone number is assigned already.");
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
          "Takes organization and channel from the number; the trunk stays. Only the organization that has registered it still sees it, and can assign it again.",
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
