import { isIP } from "node:net";
import { z } from "zod";
import type { Trx } from "../../data/database.ts";
import { conflict } from "../../http/errors.ts";
import { nameInput, organizationId } from "../kit/fields.ts";
import { shape, type TableOf } from "../kit/shape.ts";
import { standardResource } from "../kit/standard-resource.ts";

declare module "../../data/tables.ts" {
  interface Tables {
    sipTrunks: TableOf<typeof fields>;
  }
}

/** A host name: labels of letters, digits and inner hyphens (RFC 1123, section 2.1). */
const HOST_NAME = /^(?!-)[A-Za-z0-9-]{1,63}(?<!-)(?:\.(?!-)[A-Za-z0-9-]{1,63}(?<!-))*$/;

const fields = {
  name: nameInput.meta({ example: "Head office" }),
  /** Accepts any string in responses, because existing trunks may have a carrier that is no longer configured. */
  sipProvider: z.string().meta({
    description: "The carrier. One of the carriers in the gateway's settings.",
    example: "sip_provider_1",
  }),
  host: z
    .string()
    .max(253)
    .refine(
      (text) => isIP(text) !== 0 || HOST_NAME.test(text),
      "must be a host name or an IP address, without a port",
    )
    .nullable()
    .default(null)
    .meta({ description: "Host name or IP address of the carrier. `null` for the carrier's default." }),
  port: z
    .int()
    .min(1)
    .max(65_535)
    .nullable()
    .default(null)
    .meta({ description: "`null` means 5060, or 5061 for `tls` (RFC 3261, section 19.1.2)." }),
  transport: z.enum(["udp", "tcp", "tls"]).default("udp"),
  organizationId,
};

export const sipTrunks = standardResource({
  path: "/telephony/sip-trunks",
  tag: "Telephony",
  name: "sipTrunk",
  words: "SIP trunk",
  table: "sipTrunks",
  shape: shape({
    prefix: "trk",
    fields,
    meta: { id: "SipTrunk", description: "A connection to a carrier for phone numbers." },
  }),
  audit: "sipTrunk",
  narrow: ({ sipProviders }) => ({
    sipProvider: z.enum(sipProviders).meta({ description: "The carrier." }),
  }),
  inUse: {
    when: "the trunk has phone numbers, assigned or not",
    message: "The SIP trunk has phone numbers. Move or delete them first.",
  },
  async prepare({ trx, before, values: { sipProvider } }) {
    if (before && sipProvider !== before.sipProvider && (await hasNumbers(trx, before.id)))
      throw conflict("The carrier cannot change, because the SIP trunk has phone numbers of this carrier.");
    return {};
  },
  notes: { update: { conflict: "the carrier changes, and the trunk has phone numbers" } },
});

/** Registering a phone number locks the trunk's row, so the result stays valid until the transaction ends. */
async function hasNumbers(trx: Trx, trunkId: string): Promise<boolean> {
  const one = await trx
    .selectFrom("phoneNumbers")
    .select("id")
    .where("trunkId", "=", trunkId)
    .limit(1)
    .executeTakeFirst();
  return one !== undefined;
}
