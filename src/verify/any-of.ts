import { z } from "zod";
import type { VerificationScheme } from "./verifier.ts";

/** @param schemes those that may be joined */
export const anyOfSettings = (schemes: readonly [z.ZodObject, ...z.ZodObject[]]) =>
  z
    .strictObject({
      scheme: z
        .literal("anyOf")
        .describe("Any of several ways will do, for senders that have more than one."),
      of: z
        .array(z.discriminatedUnion("scheme", schemes))
        .min(2)
        .max(4)
        .describe("The ways, tried in this order under the same secrets. The weakest is as strong as all."),
    })
    .describe("Several ways to know one sender.");

export type Alternatives = readonly VerificationScheme[];
