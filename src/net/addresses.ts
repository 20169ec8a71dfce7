import ipaddr from "ipaddr.js";
import { type Address, createNetworkCheck } from "../lib/addresses/networks.ts";

/** Range of global unicast addresses (RFC 4291, section 2.4), which contains the addresses of all public IPv6 servers. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR("2000::/3");
/** Well-known prefix of NAT64 (RFC 6052, section 2.1). The last 32 bits of such an address are an IPv4 address. */
const NAT64 = ipaddr.IPv6.parseCIDR("64:ff9b::/96");
/**
 * Addresses in public ranges that actually reach the host of a virtual machine, and therefore do not count as public. This one is
 * Azure's wire server.
 */
const HOST_SERVICES = [ipaddr.IPv4.parseCIDR("168.63.129.16/32")];

/** Returns whether outbound calls may reach an IP address, given in the format of sockets and DNS resolvers. */
export type AddressCheck = (address: string) => boolean;

/**
 * Creates a check that allows public addresses, and addresses in the given networks (CIDR notation).
 *
 * The registries of special-purpose addresses (RFC 6890) decide which addresses are public. IPv6 addresses that contain an IPv4
 * address (mapped or for NAT64) are checked as that IPv4 address. Invalid addresses are rejected.
 */
export function createAddressCheck(allowNetworks: readonly string[]): AddressCheck {
  const isAllowed = createNetworkCheck(allowNetworks);
  return (text) => {
    const hexadecimal = toHexadecimal(text);
    if (!ipaddr.isValid(hexadecimal)) return false;
    const address = reachedAddress(ipaddr.process(hexadecimal));
    return isPublic(address) || isAllowed(address);
  };
}

/** Formats an IPv6 address without dots, because ipaddr.js would mistake `::127.0.0.1` (in `::/96`) for a mapped IPv4 address. */
function toHexadecimal(text: string): string {
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
