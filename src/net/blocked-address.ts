import { lookup as systemLookup } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { createAddressCheck } from "./addresses.ts";

export interface GuardOptions {
  /** Private networks in CIDR notation that outbound calls may reach. */
  readonly allowNetworks: readonly string[];
  /** Resolves host names. Defaults to the system's resolver. */
  readonly lookup?: LookupFunction;
}

const RESOLVE_TIMEOUT_MS = 3_000;

/**
 * Creates a check for URLs that users enter. It returns the address because of which the agent would reject the URL now, or
 * `undefined`. A name that does not resolve within three seconds is not rejected, because it may resolve later.
 */
export function createBlockCheck({ allowNetworks, lookup = systemLookup }: GuardOptions) {
  const isAllowed = createAddressCheck(allowNetworks);
  const resolve = (host: string): Promise<readonly string[]> =>
    new Promise((done) => {
      setTimeout(done, RESOLVE_TIMEOUT_MS, []).unref();
      lookup(host, { all: true }, (error, found) =>
        done(error || !Array.isArray(found) ? [] : found.map(({ address }) => address)),
      );
    });
  return async function findBlockedAddress(url: string): Promise<string | undefined> {
    const host = new URL(url).hostname.replace(/^\[|\]$/g, "");
    const addresses = isIP(host) === 0 ? await resolve(host) : [host];
    return addresses.find((address) => !isAllowed(address));
  };
}
