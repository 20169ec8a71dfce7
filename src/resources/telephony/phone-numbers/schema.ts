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
  .regex(/^[A-Z]{2}$/, "must be a country code of ISO 3166-1 alpha-2, in upper case")
  .meta({ description: "ISO 3166-1 alpha-2.", example: "US" });

const fields = {
  channelId: opaqueIdInput,
  countryCode: readOnly(countryCode),
  e164: readOnly(z.string().meta({ description: "ITU-T E.164.", example: "+12133734253" })),
  /** The row has who has registered it, be it assigned or not. */
  assigned: hidden(z.boolean()),
  trunkId: withAnswer(z.string().meta({ description: "Another trunk of the same carrier." }), id("trk")),
  status: z.enum(["pending_activation", "active", "suspended"]).meta({
    description:
      "`pending_activation`: not in service yet, or assigned to nobody; `active`: in service; `suspended`: out of service for a time.",
  }),
};

export const phoneNumber = shape({
  prefix: "pn",
  fields,
  inside: { organizationId: id("org").nullable().meta({ description: "Null while it is not assigned." }) },
  meta: { id: "PhoneNumber", description: "A phone number that is reached by a SIP trunk." },
});

const phoneNumberId = z.string().meta({ example: "pn_01jc9x2k4v8m3n5p7q9r1s0" });

/** The body that registers a number; the carrier is one of `sipProviders`. */
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

export const unassignInput = z.strictObject({ phoneNumberId });
export const assignInput = z.strictObject({ phoneNumberId, channelId: opaqueIdInput });
