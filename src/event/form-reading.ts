import { z } from "zod";

export const formReadingSchema = z.union(
  [
    z.literal("fields").describe("Reads the form as an object of its fields."),
    z
      .strictObject({
        field: z.string().min(1).max(255).describe("Name of the field that contains the JSON text."),
      })
      .describe("Reads the JSON text of one field as the body."),
    z
      .strictObject({
        refuse: z
          .string()
          .min(1)
          .max(1_024)
          .describe("One sentence that says how to change the sender's configuration."),
      })
      .describe("Quarantines form deliveries as `invalid_body`, with this text as the detail."),
  ],
  { error: 'must be "fields", {"field": …} or {"refuse": …} with a text' },
);

export type FormReading = z.output<typeof formReadingSchema>;
