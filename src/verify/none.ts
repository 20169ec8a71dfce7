import { z } from "zod";
import { ok } from "../lib/result.ts";
import { defineScheme } from "./verifier.ts";

const NOTHING_READ = ok({ consumedHeaders: [], consumedQuery: [] });

/** The channel's address is the credential: who knows it is believed. */
export const none = defineScheme({
  scheme: "none",
  settings: z.strictObject({ scheme: z.literal("none") }),
  needsSecret: false,
  create: () => () => NOTHING_READ,
});
