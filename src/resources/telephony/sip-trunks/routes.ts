import { isIP } from "node:net";
import { z } from "zod";
import type { Trx } from "../../../data/database.ts";
import { conflict } from "../../../http/problem.ts";
import { nameInput, organizationId } from "../../kit/fields.ts";
import type { RowDeps } from "../../kit/resource-spec.ts";
import { shape, type TableOf } from "../../kit/shape.ts";
import { standardResource } from "../../kit/standard-resource.ts";

export interface SipTrunkDeps extends RowDeps {
  /** The carriers that there are, by name. */
  readonly sipProviders: readonly string[];
}

declare module "../../../data/tables.ts" {
  interface Tables {
    sipTrunks: TableOf<typeof fields>;
  }
}

/** Labels of letters, digits and inner hyphens (RFC 1123, section 2.1). */
const HOST_NAME = /^(?!-)[A-Za-z0-9-]{1,63}(?<!-)(?:\.(?!-)[A-Za-z0-9-]{1,63}(?<!-))*$/;

const fields = {
  name: nameInput.meta({ example: "Head office" }),
  /** A carrier that the gateway is no longer set to stays where it is. */
  sipProvider: z.string().meta({
    description: "The carrier, one of those that the gateway is set to.",
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
    .meta({ description: "Where the carrier takes calls; null: where it says so itself." }),
  port: z
    .int()
    .min(1)
    .max(65_535)
    .nullable()
    .default(null)
    .meta({ description: "Null: 5060, or 5061 for `tls` (RFC 3261, section 19.1.2)." }),
  transport: z.enum(["udp", "tcp", "tls"]).default("udp"),
  organizationId,
};

/** SIP trunks: how the numbers of a carrier are reached. */
export const sipTrunks = standardResource({
  path: "/telephony/sip-trunks",
  tag: "Telephony",
  name: "sipTrunk",
  words: "SIP trunk",
  table: "sipTrunks",
  shape: shape({
    prefix: "trk",
    fields,
    meta: { id: "SipTrunk", description: "A way to a carrier that phone numbers are reached by." },
  }),
  audit: "sipTrunk",
  narrow: ({ sipProviders }: SipTrunkDeps) => ({
    sipProvider: z.enum(sipProviders).meta({ description: "The carrier." }),
  }),
  inUse: {
    when: "phone numbers, assigned or not, are on the trunk",
    message: "The SIP trunk has phone numbers.",
  },
  async prepare({ trx, before, values: { sipProvider } }) {
    if (before && sipProvider !== before.sipProvider && (await hasNumbers(trx, before.id)))
      throw conflict("The SIP trunk has phone numbers, which are of its carrier.");
    return {};
  },
  notes: { update: { conflict: "the carrier of a trunk with numbers is changed" } },
});

/** A number that is being registered locks the trunk's row until it is there. */
async function hasNumbers(trx: Trx, trunkId: string): Promise<boolean> {
  const one = await trx
    .selectFrom("phoneNumbers")
    .select("id")
    .where("trunkId", "=", trunkId)
    .limit(1)
    .executeTakeFirst();
  return one !== undefined;
}
