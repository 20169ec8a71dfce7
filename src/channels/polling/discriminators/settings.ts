import { z } from "zod";
import { etagSettings } from "./etag.ts";
import { seenSetSettings } from "./seen-set.ts";
import { sequenceSettings } from "./sequence.ts";
import { timestampSettings } from "./timestamp.ts";
import { tokenSettings } from "./token.ts";

/** How a channel tells what is new. */
export const discriminatorSettings = z
  .discriminatedUnion("by", [
    timestampSettings,
    sequenceSettings,
    seenSetSettings,
    tokenSettings,
    etagSettings,
  ])
  .describe("How it is told what is new.");

export type DiscriminatorSettings = z.output<typeof discriminatorSettings>;
