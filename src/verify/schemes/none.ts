import { z } from "zod";
import { ok } from "../../lib/result.ts";
import { defineScheme } from "../verifier.ts";

const BELIEVED = ok({});

/** The channel's address is the credential: who knows it is believed. */
export const none = defineScheme({
  scheme: "none",
  settings: z
    .strictObject({ scheme: z.literal("none").describe("Nothing is checked.") })
    .describe("The channel's address is the credential."),
  needsSecret: false,
  create: () => ({ consumedHeaders: [], consumedQuery: [], consumedBody: [], verify: () => BELIEVED }),
});
