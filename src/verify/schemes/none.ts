import { z } from "zod";
import { ok } from "../../lib/result.ts";
import { defineScheme } from "../verifier.ts";

const VERIFIED = ok({});

export const none = defineScheme({
  scheme: "none",
  configSchema: z
    .strictObject({ scheme: z.literal("none").describe("Accepts every delivery without a signature check.") })
    .describe("Accepts every delivery. The channel's address is the only credential."),
  needsSecret: false,
  covers: () => false,
  create: () => ({ consumedHeaders: [], consumedQuery: [], consumedBody: [], verify: () => VERIFIED }),
});
