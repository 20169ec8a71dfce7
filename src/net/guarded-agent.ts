import { lookup as systemLookup } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { Agent, buildConnector } from "undici";
import { type AddressCheck, createAddressCheck } from "./addresses.ts";
import { OutboundError } from "./outbound.ts";

export interface GuardOptions {
  /** Networks (CIDR) that may be reached though they are not public. */
  readonly allowNetworks: readonly string[];
  /** Default: the system's resolver. */
  readonly lookup?: LookupFunction;
}

/** A connection that nobody waits for any longer is given up after so long. */
const CONNECT_TIMEOUT_MS = 60_000;

/**
 * Connections to addresses that the check lets through, and to no others: the guard stands where the socket is made, so that
 * neither a spelling of the address, nor a redirect, nor a name that changes what it resolves to passes it by. A name of several
 * addresses of which one is refused is refused whole.
 */
export function createGuardedAgent(options: GuardOptions): Agent {
  return new Agent({
    connect: createGuardedConnector(options),
    // The limits of each call are kept by `exchange.ts`, to the millisecond.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}

function createGuardedConnector({ allowNetworks, lookup = systemLookup }: GuardOptions) {
  const isAllowed = createAddressCheck(allowNetworks);
  // HTTP/1.1 alone: one connection is one exchange, so that ending one disturbs no other.
  const connect = buildConnector({
    allowH2: false,
    timeout: CONNECT_TIMEOUT_MS,
    lookup: guardedLookup(lookup, isAllowed),
  });
  return (options: buildConnector.Options, callback: buildConnector.Callback): void => {
    // Addresses are not looked up: they come past the resolver.
    const host = options.hostname.replace(/^\[|\]$/g, "");
    if (isIP(host) !== 0 && !isAllowed(host)) {
      callback(blocked(), null);
      return;
    }
    connect(options, (...[error, socket]) => {
      // undici's own connector leaves the second argument out where it fails.
      if (error || !socket) {
        callback(error ?? new Error("no socket"), null);
      } else if (socket.remoteAddress === undefined) {
        // The server has hung up already; its address is not known to be forbidden.
        socket.destroy();
        callback(hungUp(), null);
      } else if (!isAllowed(socket.remoteAddress)) {
        socket.destroy();
        callback(blocked(), null);
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
      else if (!addresses.every(({ address }) => isAllowed(address))) callback(blocked(), "");
      else if (options.all === true) callback(null, addresses);
      else callback(null, first.address, first.family);
    });
  };

const hungUp = (): OutboundError => new OutboundError("reset", "the connection broke");

const blocked = (): OutboundError =>
  new OutboundError(
    "blocked",
    "the address is not public; INLET_ALLOW_NETWORKS names the networks that may be reached besides",
  );
