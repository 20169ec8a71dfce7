import { z } from "zod";
import { text } from "../../../event/setting-fields.ts";

/** The starting point of a source without a cursor. */
export const startAtSettings = z
  .union(
    [
      z.enum(["now", "earliest"]),
      z.strictObject({ value: text(4096).describe("A text, as the discriminator has it.") }),
    ],
    { error: 'must be "now", "earliest", or {"value": …} with a text' },
  )
  .default("now")
  .describe(
    "Where a source without a cursor begins: `now` leaves out all that is there already (by the time at which the source began to be one, or by what the first poll finds), `earliest` takes it, a value is an instant (itself included), a number (itself left out) or a token.",
  );

export type StartAt = z.output<typeof startAtSettings>;
