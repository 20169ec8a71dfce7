import { z } from "zod";

/** Settings that every pull kind adds to `commonSettings`. Failed items are always quarantined, because there is no sender to notify. */
export const pullSettings = {
  connection: z
    .enum(["none", "optional", "required"])
    .default("optional")
    .describe(
      "Whether requests use the credentials of a connection. With `none`, the channel accepts no connection. With `required`, it fetches no events until it has one.",
    ),
  run: z
    .enum(["subscribed", "always"])
    .default("subscribed")
    .describe(
      "When the channel fetches events: only while an active or paused subscription covers it, or always.",
    ),
  onInvalid: z
    .enum(["quarantine"])
    .default("quarantine")
    .describe(
      "Handling of invalid items. They are always quarantined, because there is no sender to notify.",
    ),
  onNoMatch: z
    .enum(["keepLast", "quarantine"])
    .default("keepLast")
    .describe("Handling of items that match no definition: keep only the newest ones, or quarantine all."),
} as const;
