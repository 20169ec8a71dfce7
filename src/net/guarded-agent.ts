import { lookup as systemLookup } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { Agent, buildConnector } from "undici";
import { type AddressCheck, createAddressCheck } from "./addresses.ts";
import type { GuardOptions } from "./blocked-address.ts";
import { OutboundError, PrivateAddressError } from "./outbound.ts";

/** Maximum time in ms for a connection attempt, which may outlast the call that started it. */
const CONNECT_TIMEOUT_MS = 60_000;

/**
 * Creates an HTTP agent that connects only to allowed addresses.
 *
 * The agent checks the address of each connection. Other spellings of an address, redirects, and names that resolve differently
 * later therefore cannot bypass the check. A host name is rejected if any of its addresses is not allowed.
 */
export function createGuardedAgent(options: GuardOptions): Agent {
  return new Agent({
    connect: createGuardedConnector(options),
    // Disable the timeouts of undici, because `exchange.ts` enforces more precise limits for each call.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}

function createGuardedConnector({ allowNetworks, lookup = systemLookup }: GuardOptions) {
  const isAllowed = createAddressCheck(allowNetworks);
  // Use HTTP/1.1 only. A connection then carries one request at a time, so aborting one request does not affect others.
  const connect = buildConnector({
    allowH2: false,
    timeout: CONNECT_TIMEOUT_MS,
    lookup: guardedLookup(lookup, isAllowed),
  });
  return (options: buildConnector.Options, callback: buildConnector.Callback): void => {
    // Check IP addresses here, because only host names are passed to `lookup`.
    const host = options.hostname.replace(/^\[|\]$/g, "");
    if (isIP(host) !== 0 && !isAllowed(host)) {
      callback(new PrivateAddressError(), null);
      return;
    }
    connect(options, (...[error, socket]) => {
      // On failure, undici's connector omits the second argument.
      if (error || !socket) {
        callback(error ?? new Error("no socket"), null);
      } else if (socket.remoteAddress === undefined) {
        // The server has already closed the connection. Its address is therefore unknown and cannot be checked.
        socket.destroy();
        callback(createResetError(), null);
      } else if (!isAllowed(socket.remoteAddress)) {
        socket.destroy();
        callback(new PrivateAddressError(), null);
      } else {
        callback(null, socket);
      }
    });
  };
}

const guardedLookup =
  (lookup: LookupFunction, isAllowed: AddressCheck): LookupFunction =>
  (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, found) => {
      const addresses = Array.isArray(found) ? found : [];
      const [first] = addresses;
      if (error) callback(error, "");
      else if (first === undefined) callback(Object.assign(new Error("no address"), { code: "ENODATA" }), "");
      else if (!addresses.every(({ address }) => isAllowed(address))) callback(new PrivateAddressError(), "");
      else if (options.all === true) callback(null, addresses);
      else callback(null, first.address, first.family);
    });
  };

const createResetError = (): OutboundError => new OutboundError("reset", "the connection broke");
