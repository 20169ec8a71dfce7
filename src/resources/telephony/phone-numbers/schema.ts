import { z } from "zod";
import { id } from "../../../http/fields.ts";
import { hidden, readOnly, withAnswer } from "../../kit/field.ts";
import { opaqueIdInput } from "../../kit/fields.ts";
import { shape, type TableOf } from "../../kit/shape.ts";

declare module "../../../data/tables.ts" {
  interface Tables {
    phoneNumbers: TableOf<typeof fields>;
  }
}

const countryCode = z
  .string()
  .regex(/^[A-Z]{2}$/, "must be an ISO 3166-1 alpha-2 country code in upper case")
  .meta({ description: "Country code (ISO 3166-1 alpha-2).", example: "US" });

const fields = {
  channelId: opaqueIdInput,
  countryCode: readOnly(countryCode),
  e164: readOnly(z.string().meta({ description: "The number in E.164 format.", example: "+12133734253" })),
  /** Whether the number is assigned. If false, `organizationId` is still the organization that registered the number. */
  assigned: hidden(z.boolean()),
  trunkId: withAnswer(
    z.string().meta({ description: "A SIP trunk. A new trunk must have the same carrier." }),
    id("trk"),
  ),
  status: z.enum(["pending_activation", "active", "suspended"]).meta({
    description:
      "`pending_activation` if the number is not in service yet or is not assigned, `active` if it is in service, `suspended` if it is temporarily out of service.",
  }),
};

export const phoneNumber = shape({
  prefix: "pn",
  fields,
  inside: {
    organizationId: id("org").nullable().meta({ description: "`null` while the number is not assigned." }),
  },
  meta: { id: "PhoneNumber", description: "A phone number on a SIP trunk." },
});

const phoneNumberId = z.string().meta({ example: "pn_01jc9x2k4v8m3n5p7q9r1s0" });

export const registerInputOf = (sipProviders: readonly string[]) =>
  z.strictObject({
    countryCode,
    phoneNumber: z.string().min(1).max(64).meta({
      description: "The number in national or international format.",
      example: "+1 213 373 4253",
    }),
    sipProvider: z.enum(sipProviders).meta({ description: "The carrier. Must be the carrier of the trunk." }),
    sipTrunkId: z.string().meta({ example: "trk_01jc9x2k4v8m3n5p7q9r1s0" }),
  });

export const unassignInput = z.strictObject({ phoneNumberId });
export const assignInput = z.strictObject({ phoneNumberId, channelId: opaqueIdInput });
