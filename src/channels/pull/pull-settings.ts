import { z } from "zod";

/**
 * Settings of every pull kind, to be spread after `commonSettings`. A fetched delivery has no sender to notify, so failed items are always
 * quarantined.
 */
export const pullSettings = {
  connection: z
    .enum(["none", "optional", "required"])
    .default("optional")
    .describe(
      "Whether its calls carry the credentials of a connection: `none` refuses one; where one is `required`, nothing is fetched before it is there.",
    ),
  run: z
    .enum(["subscribed", "always"])
    .default("subscribed")
    .describe("When it fetches: while a subscription covers the channel, a paused one too, or always."),
  onInvalid: z
    .enum(["quarantine"])
    .default("quarantine")
    .describe("What becomes of an item that fails: it is kept. Nobody could be answered."),
  onNoMatch: z
    .enum(["keepLast", "quarantine"])
    .default("keepLast")
    .describe("What becomes of an item that no definition matches: the newest are kept, or all are."),
} as const;
