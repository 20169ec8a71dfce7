import { z } from "zod";

const DAY_SECONDS = 86_400;

export const rotateSchema = z.strictObject({
  graceSeconds: z
    .int()
    .min(0)
    .max(30 * DAY_SECONDS)
    .describe(
      "Maximum time in seconds for which all former addresses stay valid. With 0, they become invalid at once.",
    )
    .default(DAY_SECONDS),
});
