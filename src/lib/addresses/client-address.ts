import ipaddr from "ipaddr.js";
import { LRUCache } from "lru-cache";
import { upToEntries } from "../up-to-entries.ts";
import { type Address, createNetworkCheck } from "./networks.ts";

export interface ClientAddress {
  /** Client IP address, or `unknown` if none could be determined. IPv4-mapped IPv6 addresses appear in dotted IPv4 form. */
  readonly address: string;
  /**
   * Network to which rate limits apply: a single IPv4 address, or the /64 network of an IPv6 address. One host often owns a whole
   * /64.
   */
  readonly network: string;
}

/** @param forwardedFor all `X-Forwarded-For` headers of the request, joined by commas */
export type ClientAddressOf = (
  peer: string | undefined,
  forwardedFor: string | readonly string[] | undefined,
) => ClientAddress;

const MAX_KNOWN = 8_192;
/**
 * Maximum length in characters of an `X-Forwarded-For` value whose parsed result is cached. Longer values are parsed for every
 * request.
 */
const MAX_KNOWN_CHARS = 256;
const MAX_HOPS = 32;
const UNKNOWN: ClientAddress = { address: "unknown", network: "unknown" };

/**
 * Creates a function that finds the address of a client behind the proxies in `trusted` (networks in CIDR notation).
 *
 * Each proxy appends the address of its peer to `X-Forwarded-For`. The function reads the header from the right and skips trusted
 * addresses. The first untrusted address is the client. Entries to the left of it are unverified claims of the client.
 *
 * An invalid entry ends the search. The proxy that forwarded it then counts as the client. Other forwarding headers are ignored.
 *
 * @param onUntrusted called once, with the first untrusted peer that sends `X-Forwarded-For`
 */
export function createClientAddressOf(
  trusted: readonly string[],
  onUntrusted: (peer: string) => void = () => {},
): ClientAddressOf {
  const isTrusted = createNetworkCheck(trusted);
  const known = new LRUCache<string, ClientAddress>(upToEntries(MAX_KNOWN));
  let hasReported = false;
  const report = (peer: string): void => {
    if (hasReported) return;
    hasReported = true;
    onUntrusted(peer);
  };

  function walk(peer: string, chain: string): ClientAddress {
    const first = parseAddress(peer);
    if (first === undefined) return UNKNOWN;
    let client = first;
    let end = chain.length;
    if (chain !== "" && !isTrusted(first)) report(first.toString());
    for (let hops = 0; hops < MAX_HOPS && end > 0 && isTrusted(client); hops++) {
      const comma = chain.lastIndexOf(",", end - 1);
      const before = parseAddress(chain.slice(comma + 1, end).trim());
      if (before === undefined) break;
      client = before;
      end = comma;
    }
    return { address: client.toString(), network: toNetwork(client) };
  }

  return (peer = "", forwardedFor = "") => {
    const chain = trusted.length === 0 ? "" : String(forwardedFor);
    if (!hasReported && trusted.length === 0 && forwardedFor.length > 0) report(peer);
    const key = chain === "" ? peer : `${peer} ${chain}`;
    const found = known.get(key);
    if (found !== undefined) return found;
    const client = walk(peer, chain);
    if (key.length <= MAX_KNOWN_CHARS) known.set(key, client);
    return client;
  };
}

/** Parses `192.0.2.1`, `2001:db8::1` or `[2001:db8::1]`. A port may follow, because some proxies append one. */
export function parseAddress(text: string): Address | undefined {
  const bare = /^\[([^\]]+)\](?::\d{1,5})?$/.exec(text)?.[1] ?? /^([\d.]+):\d{1,5}$/.exec(text)?.[1] ?? text;
  if (!(ipaddr.IPv4.isValidFourPartDecimal(bare) || ipaddr.IPv6.isValid(bare))) return undefined;
  return ipaddr.process(bare);
}

function toNetwork(address: Address): string {
  if (address instanceof ipaddr.IPv4) return address.toString();
  const [a = 0, b = 0, c = 0, d = 0] = address.parts;
  return `${[a, b, c, d].map((part) => part.toString(16)).join(":")}::/64`;
}
