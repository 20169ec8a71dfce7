import ipaddr from "ipaddr.js";
import { type Address, createNetworkCheck } from "../lib/addresses/networks.ts";

/** Global unicast (RFC 4291, section 2.4): whatever lies outside, assigned or not, is no server of the public internet. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR("2000::/3");
/** NAT64's well-known prefix (RFC 6052, section 2.1): an IPv4 address stands in the last 32 bits. */
const NAT64 = ipaddr.IPv6.parseCIDR("64:ff9b::/96");
/** Public by number, but answered by the machine's own host: the wire server of Azure. */
const HOST_SERVICES = [ipaddr.IPv4.parseCIDR("168.63.129.16/32")];

/** True for an address (as sockets and resolvers spell it) that outbound calls may reach. */
export type AddressCheck = (address: string) => boolean;

/**
 * Lets through what is public by the registries of special-purpose addresses (RFC 6890), and what lies in one of the networks
 * (CIDR). An IPv4 address inside an IPv6 one, mapped or for NAT64, is judged as the IPv4 address that will be reached; what is
 * no address is not let through.
 */
export function createAddressCheck(allowNetworks: readonly string[]): AddressCheck {
  const isAllowed = createNetworkCheck(allowNetworks);
  return (text) => {
    const hexadecimal = withoutDots(text);
    if (!ipaddr.isValid(hexadecimal)) return false;
    const address = reachedAddress(ipaddr.process(hexadecimal));
    return isPublic(address) || isAllowed(address);
  };
}

/** ipaddr.js reads `::127.0.0.1`, an address of `::/96`, as if it were mapped: it gets all of IPv6 in hexadecimal. */
function withoutDots(text: string): string {
  if (!text.includes(":") || !text.includes(".")) return text;
  return URL.parse(`http://[${text}]/`)?.hostname.slice(1, -1) ?? "";
}

function reachedAddress(address: Address): Address {
  if (address instanceof ipaddr.IPv4 || !address.match(NAT64)) return address;
  return new ipaddr.IPv4(address.toByteArray().slice(-4));
}

function isPublic(address: Address): boolean {
  if (address.range() !== "unicast") return false;
  return address instanceof ipaddr.IPv4
    ? !HOST_SERVICES.some((network) => address.match(network))
    : address.match(GLOBAL_UNICAST);
}
