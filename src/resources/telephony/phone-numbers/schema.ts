import { z } from "zod";
import type { PhoneNumberRow } from "../../../data/telephony-tables.ts";
import { id, type Shown } from "../../../http/fields.ts";
import { opaqueIdInput } from "../../kit/fields.ts";
import { patchOf } from "../../kit/merge.ts";
import { times, timesOf } from "../../kit/times.ts";

const status = z.enum(["pending_activation", "active", "suspended"]).meta({
  description:
    "`pending_activation`: not in service yet, or assigned to nobody; `active`: in service; `suspended`: out of service for a time.",
});
const countryCode = z
  .string()
  .regex(/^[A-Z]{2}$/, "must be a country code of ISO 3166-1 alpha-2, in upper case")
  .meta({ description: "ISO 3166-1 alpha-2.", example: "US" });
const phoneNumberId = z.string().meta({ example: "pn_01jc9x2k4v8m3n5p7q9r1s0" });

/** What is asked for when a number is registered; the carrier is one of `sipProviders`. */
export const registerInputOf = (sipProviders: readonly string[]) =>
  z.strictObject({
    countryCode,
    phoneNumber: z.string().min(1).max(64).meta({
      description: "As it is dialled in its country, or in international form.",
      example: "+1 213 373 4253",
    }),
    sipProvider: z.enum(sipProviders).meta({ description: "The carrier, which is that of the trunk." }),
    sipTrunkId: z.string().meta({ example: "trk_01jc9x2k4v8m3n5p7q9r1s0" }),
  });
export type RegisterInput = z.output<ReturnType<typeof registerInputOf>>;

export const unassignInput = z.strictObject({ phoneNumberId });
export const assignInput = z.strictObject({ phoneNumberId, channelId: opaqueIdInput });
export type AssignInput = z.output<typeof assignInput>;

/** What may be changed of a number. */
export const phoneNumberInput = z.strictObject({
  channelId: opaqueIdInput,
  trunkId: z.string().meta({ description: "Another trunk of the same carrier." }),
  status,
});
export const phoneNumberPatch = patchOf(phoneNumberInput);

/** The number as the API answers it. */
export const phoneNumberSchema = z
  .object({
    id: id("pn"),
    channelId: z.string().nullable(),
    countryCode,
    e164: z.string().meta({ description: "ITU-T E.164.", example: "+12133734253" }),
    organizationId: id("org").nullable().meta({ description: "Null while it is not assigned." }),
    trunkId: id("trk"),
    status,
    ...times,
  })
  .meta({ id: "PhoneNumber", description: "A phone number that is reached by a SIP trunk." });
export type PhoneNumber = Shown<z.output<typeof phoneNumberSchema>>;

export function renderPhoneNumber(row: PhoneNumberRow): PhoneNumber {
  const { id, channelId, countryCode, e164, assigned, trunkId, status } = row;
  const organizationId = assigned ? row.organizationId : null;
  return { id, channelId, countryCode, e164, organizationId, trunkId, status, ...timesOf(row) };
}
