import ipaddr from "ipaddr.js";
import { LRUCache } from "lru-cache";
import { upToEntries } from "../up-to-entries.ts";
import { type Address, createNetworkCheck } from "./networks.ts";

/** Where a request comes from. */
export interface ClientAddress {
  /** IPv4 in dotted form, also where it was mapped into IPv6; `unknown` where there is none. */
  readonly address: string;
  /** The network that counts as one sender: an IPv4 address, or the /64 of an IPv6 one, all of which one host has at its command. */
  readonly network: string;
}

/** @param forwardedFor all `X-Forwarded-For` headers of the request, joined by commas. */
export type ClientAddressOf = (
  peer: string | undefined,
  forwardedFor: string | readonly string[] | undefined,
) => ClientAddress;

const MAX_KNOWN = 8_192;
/** A longer chain is walked each time instead of being remembered. */
const MAX_KNOWN_CHARS = 256;
const MAX_HOPS = 32;
const UNKNOWN: ClientAddress = { address: "unknown", network: "unknown" };

/**
 * Tells the client's address from those of proxies. `X-Forwarded-For` is walked from the right, where the nearest proxy has
 * written, for as long as who wrote is in one of the trusted networks (CIDR); the first that is not is the client. What
 * stands left of it is the client's own word. An entry that is no address ends the walk at the proxy that passed it on.
 * Other forwarding headers are not read.
 *
 * @param onUntrusted told once, of the first peer that sends `X-Forwarded-For` and is not trusted
 */
export function createClientAddressOf(
  trusted: readonly string[],
  onUntrusted: (peer: string) => void = () => {},
): ClientAddressOf {
  const isTrusted = createNetworkCheck(trusted);
  const known = new LRUCache<string, ClientAddress>(upToEntries(MAX_KNOWN));
  let isTold = false;
  const tell = (peer: string): void => {
    if (isTold) return;
    isTold = true;
    onUntrusted(peer);
  };

  function walk(peer: string, chain: string): ClientAddress {
    const first = parseAddress(peer);
    if (first === undefined) return UNKNOWN;
    let client = first;
    let end = chain.length;
    if (chain !== "" && !isTrusted(first)) tell(first.toString());
    for (let hops = 0; hops < MAX_HOPS && end > 0 && isTrusted(client); hops++) {
      const comma = chain.lastIndexOf(",", end - 1);
      const before = parseAddress(chain.slice(comma + 1, end).trim());
      if (before === undefined) break;
      client = before;
      end = comma;
    }
    return { address: client.toString(), network: networkOf(client) };
  }

  return (peer = "", forwardedFor = "") => {
    const chain = trusted.length === 0 ? "" : String(forwardedFor);
    if (!isTold && trusted.length === 0 && forwardedFor.length > 0) tell(peer);
    const key = chain === "" ? peer : `${peer} ${chain}`;
    const found = known.get(key);
    if (found !== undefined) return found;
    const client = walk(peer, chain);
    if (key.length <= MAX_KNOWN_CHARS) known.set(key, client);
    return client;
  };
}

/** `192.0.2.1`, `2001:db8::1`, `[2001:db8::1]`, and with a port behind them, as some proxies write. */
export function parseAddress(text: string): Address | undefined {
  const bare = /^\[([^\]]+)\](?::\d{1,5})?$/.exec(text)?.[1] ?? /^([\d.]+):\d{1,5}$/.exec(text)?.[1] ?? text;
  if (!(ipaddr.IPv4.isValidFourPartDecimal(bare) || ipaddr.IPv6.isValid(bare))) return undefined;
  return ipaddr.process(bare);
}

function networkOf(address: Address): string {
  if (address instanceof ipaddr.IPv4) return address.toString();
  const [a = 0, b = 0, c = 0, d = 0] = address.parts;
  return `${[a, b, c, d].map((part) => part.toString(16)).join(":")}::/64`;
}
