import type { RowDeps } from "../../kit/owned-rows.ts";
import type { Kit } from "../../kit/resource-spec.ts";
import { defineRoute } from "../../kit/route.ts";
import { standardResource } from "../../kit/standard-resource.ts";
import { assignPhoneNumber, registerPhoneNumber, requireChangeable } from "./queries.ts";
import { assignInput, phoneNumber, registerInputOf, unassignInput } from "./schema.ts";

export interface PhoneNumberDeps extends RowDeps {
  /** The carriers that there are, by name. */
  readonly sipProviders: readonly string[];
}

const post = { method: "post", answer: phoneNumber.entity } as const;
const missing = "the phone number is not there";

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
  more: (deps: PhoneNumberDeps, { answer }: Kit<typeof phoneNumber>) => [
    defineRoute(
      {
        ...post,
        path: "/register",
        operation: "registerPhoneNumber",
        summary: "Register a phone number",
        description:
          "It must be a valid number of its country, and nobody else's. It is assigned to the caller's organization.",
        body: registerInputOf(deps.sipProviders),
        creates: true,
        missing: "the SIP trunk is not there",
        conflict: "the number is registered already, here or elsewhere",
      },
      async ({ caller, body }) => answer(deps.db, caller, await registerPhoneNumber(deps, caller, body)),
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
      async ({ caller, body: { phoneNumberId, channelId } }) => {
        const change = { assigned: true, channelId } as const;
        return answer(deps.db, caller, await assignPhoneNumber(deps, caller, phoneNumberId, change));
      },
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
      async ({ caller, body: { phoneNumberId } }) => {
        const change = { assigned: false } as const;
        return answer(deps.db, caller, await assignPhoneNumber(deps, caller, phoneNumberId, change));
      },
    ),
  ],
});
