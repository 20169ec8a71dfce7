import { OutboundError, PrivateAddressError } from "./outbound.ts";

/** Ways to allow a call to an address that is not public. */
export const ALLOW_PRIVATE =
  "Use a public address, or add the network to the gateway's setting INLET_ALLOW_NETWORKS, such as 127.0.0.0/8 or 10.0.0.0/8, and restart it";

/**
 * Makes a call, and names the configured URL in the error if the address is blocked. The error must not say to which address a host name
 * or a redirect leads, because that is a detail of an internal network.
 *
 * @param field field with the URL, as it is called in messages
 */
export async function nameBlocked<T>(field: string, url: string, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (!(error instanceof PrivateAddressError)) throw error;
    const { origin } = new URL(url);
    const message = `Inlet may not call ${origin} (${field}), because its address, or that of a redirect, is not public. ${ALLOW_PRIVATE}`;
    throw new OutboundError("blocked", message, { cause: error });
  }
}
