import { z } from "zod";
import { text } from "../../../event/config-fields.ts";

export const startAtSchema = z
  .union(
    [
      z.enum(["now", "earliest"]),
      z.strictObject({
        value: text(4096).describe(
          "Starting point: a timestamp, a number or a token, depending on the discriminator.",
        ),
      }),
    ],
    { error: 'must be "now", "earliest" or {"value": "…"}' },
  )
  .describe(
    "Starting point of a channel without a cursor. `now` skips items that already exist: those from before the start time by the server's clock, or those found by the first poll. `earliest` includes them. A value is a timestamp (inclusive), a number (exclusive) or a token.",
  )
  .default("now");

export type StartAt = z.output<typeof startAtSchema>;
