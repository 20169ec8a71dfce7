import { z } from "zod";
import { ok } from "../../lib/result.ts";
import { defineScheme } from "../verifier.ts";

const VERIFIED = ok({});

/** Accepts every request. The only credential is the address of the channel. */
export const none = defineScheme({
  scheme: "none",
  settings: z
    .strictObject({ scheme: z.literal("none").describe("Inlet checks no signature.") })
    .describe("The channel's address is the credential."),
  needsSecret: false,
  create: () => ({ consumedHeaders: [], consumedQuery: [], consumedBody: [], verify: () => VERIFIED }),
});
