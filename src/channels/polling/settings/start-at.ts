import { z } from "zod";
import { text } from "../../../event/setting-fields.ts";

export const startAtSettings = z
  .union(
    [
      z.enum(["now", "earliest"]),
      z.strictObject({ value: text(4096).describe("A text in the form that the discriminator expects.") }),
    ],
    { error: 'must be "now", "earliest" or {"value": "…"}' },
  )
  .default("now")
  .describe(
    "Start of a source without a cursor. `now` skips existing items: those from before the start time, or those found by the first poll. `earliest` includes them. A value is a timestamp (inclusive), a number (exclusive) or a token.",
  );

export type StartAt = z.output<typeof startAtSettings>;
