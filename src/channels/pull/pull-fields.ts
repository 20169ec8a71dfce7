import { z } from "zod";

/** Settings of all channel kinds that fetch events. Invalid items are always quarantined, because no sender could be notified. */
export const pullFields = {
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
    .describe(
      "How to handle invalid items. They are always quarantined, because there is no sender to notify.",
    )
    .default("quarantine"),
  onNoMatch: z
    .enum(["keepLast", "quarantine", "ignore"])
    .describe(
      "How to handle items that match no definition: `keepLast` stores only the newest ones, `quarantine` stores all, `ignore` only counts them as ignored.",
    )
    .default("keepLast"),
} as const;
