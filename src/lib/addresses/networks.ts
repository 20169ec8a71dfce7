import { isIP } from "node:net";
import ipaddr from "ipaddr.js";

export type Address = ipaddr.IPv4 | ipaddr.IPv6;

/**
 * Converts a network (`10.0.0.0/8`, `fd00::/8`) or a single address to CIDR notation. Returns `undefined` if the text is neither.
 */
export function parseNetwork(text: string): string | undefined {
  const [address = "", prefix, ...rest] = text.split("/");
  const bits = { 0: 0, 4: 32, 6: 128 }[isIP(address)] ?? 0;
  const length = prefix === undefined ? bits : Number(prefix);
  const isNetwork =
    bits > 0 && rest.length === 0 && /^\d{1,3}$/.test(String(prefix ?? bits)) && length <= bits;
  return isNetwork ? `${address}/${length}` : undefined;
}

export const NO_NETWORK = "must be a network such as 10.0.0.0/8 or fd00::/8";

export function createNetworkCheck(networks: readonly string[]): (address: Address) => boolean {
  const parsed = networks.map((network) => ipaddr.parseCIDR(network));
  return (address) =>
    parsed.some(([network, bits]) => network.kind() === address.kind() && address.match(network, bits));
}
