import { isIP } from "node:net";
import { z } from "zod";
import type { SipTrunkRow } from "../../../data/telephony-tables.ts";
import { id, type Shown } from "../../../http/fields.ts";
import { nameInput } from "../../kit/fields.ts";
import { patchOf } from "../../kit/merge.ts";
import { times, timesOf } from "../../kit/times.ts";

/** Labels of letters, digits and inner hyphens (RFC 1123, section 2.1). */
const HOST_NAME = /^(?!-)[A-Za-z0-9-]{1,63}(?<!-)(?:\.(?!-)[A-Za-z0-9-]{1,63}(?<!-))*$/;

const host = z
  .string()
  .max(253)
  .refine(
    (text) => isIP(text) !== 0 || HOST_NAME.test(text),
    "must be a host name or an IP address, without a port",
  )
  .nullable()
  .meta({ description: "Where the carrier takes calls; null: where it says so itself." });
const port = z
  .int()
  .min(1)
  .max(65_535)
  .nullable()
  .meta({ description: "Null: 5060, or 5061 for `tls` (RFC 3261, section 19.1.2)." });
const transport = z.enum(["udp", "tcp", "tls"]);
const sipProvider = z
  .string()
  .meta({ description: "The carrier, one of those that the gateway is set to.", example: "sip_provider_1" });

/** What is written of a trunk. A carrier that the gateway is no longer set to stays where it is. */
export const sipTrunkContent = z.strictObject({
  name: nameInput.meta({ example: "Head office" }),
  sipProvider,
  host: host.default(null),
  port: port.default(null),
  transport: transport.default("udp"),
});
export type SipTrunkInput = z.output<typeof sipTrunkContent>;

/** The same as it comes in: the carrier is one of `sipProviders`. */
export const sipTrunkInputOf = (sipProviders: readonly string[]) =>
  sipTrunkContent.extend({ sipProvider: z.enum(sipProviders).meta({ description: "The carrier." }) });
export const sipTrunkPatchOf = (sipProviders: readonly string[]) => patchOf(sipTrunkInputOf(sipProviders));

/** The trunk as the API answers it. */
export const sipTrunkSchema = z
  .object({
    id: id("trk"),
    name: z.string(),
    sipProvider,
    host,
    port,
    transport,
    organizationId: id("org"),
    ...times,
  })
  .meta({ id: "SipTrunk", description: "A way to a carrier that phone numbers are reached by." });
export type SipTrunk = Shown<z.output<typeof sipTrunkSchema>>;

export function renderSipTrunk(row: SipTrunkRow): SipTrunk {
  const { id, name, sipProvider, host, port, transport, organizationId } = row;
  return { id, name, sipProvider, host, port, transport, organizationId, ...timesOf(row) };
}
