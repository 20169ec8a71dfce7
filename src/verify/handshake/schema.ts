import { checkHandshake } from "./findings.ts";
import { handshakeShape } from "./settings.ts";

/** A request that is no delivery: what it looks like, and what it is answered. */
export const handshakeSchema = handshakeShape
  .check(checkHandshake)
  .describe("A request that is answered and is no delivery.");
