import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { standardRoutes } from "../../kit/standard-routes.ts";
import {
  assignPhoneNumber,
  deletePhoneNumber,
  getPhoneNumber,
  listPhoneNumbers,
  type PhoneNumberDeps,
  registerPhoneNumber,
  unassignPhoneNumber,
  updatePhoneNumber,
} from "./queries.ts";
import {
  assignInput,
  phoneNumberPatch,
  phoneNumberSchema,
  registerInputOf,
  unassignInput,
} from "./schema.ts";

const phoneNumber = standardRoutes({
  name: "phoneNumber",
  words: "phone number",
  prefix: "pn",
  entity: phoneNumberSchema,
});
const missing = "the phone number is not there";

/** Phone numbers, each registered by one organization in all, and assigned to it or not. */
export const phoneNumbers: Resource<PhoneNumberDeps> = {
  path: "/telephony/phone-numbers",
  tag: "Telephony",
  routes: (deps) => [
    defineRoute(
      {
        method: "post",
        path: "/register",
        operation: "registerPhoneNumber",
        summary: "Register a phone number",
        description:
          "It must be a valid number of its country, and nobody else's. It is assigned to the caller's organization.",
        body: registerInputOf(deps.sipProviders),
        answer: phoneNumberSchema,
        creates: true,
        missing: "the SIP trunk is not there",
        conflict: "the number is registered already, here or elsewhere",
      },
      ({ caller, body }) => registerPhoneNumber(deps, caller, body),
    ),
    defineRoute(
      {
        method: "post",
        path: "/assign",
        operation: "assignPhoneNumber",
        summary: "Assign a phone number",
        description: "Gives a number that was unassigned back to the organization that has registered it.",
        body: assignInput,
        answer: phoneNumberSchema,
        missing,
        conflict: "the number is assigned already",
      },
      ({ caller, body }) => assignPhoneNumber(deps, caller, body),
    ),
    defineRoute(
      {
        method: "post",
        path: "/unassign",
        operation: "unassignPhoneNumber",
        summary: "Unassign a phone number",
        description:
          "Takes organization and channel from the number; the trunk stays. Only the organization that has registered it still sees it, and can assign it again.",
        body: unassignInput,
        answer: phoneNumberSchema,
        missing,
        conflict: "the number is not assigned",
      },
      ({ caller, body }) => unassignPhoneNumber(deps, caller, body.phoneNumberId),
    ),
    phoneNumber.list(({ caller, page }) => listPhoneNumbers(deps, caller, page)),
    phoneNumber.get(({ caller, id }) => getPhoneNumber(deps, caller, id)),
    phoneNumber.update(
      {
        body: phoneNumberPatch,
        missing: "number or trunk is not there",
        conflict: "the number is not assigned",
      },
      ({ caller, id, patch }) => updatePhoneNumber(deps, caller, id, patch),
    ),
    phoneNumber.remove({ description: "It can be registered anew, by anybody." }, ({ caller, id }) =>
      deletePhoneNumber(deps, caller, id),
    ),
  ],
};
