import { z } from "zod";

/** How deliveries that come as a form are read. */
export const formReadingSchema = z.union(
  [
    z.literal("fields").describe("As an object of its fields."),
    z
      .strictObject({
        field: z.string().min(1).max(255).describe("The field whose text is the JSON of the delivery."),
      })
      .describe("By one field, whose JSON is read as if it had come as the body."),
    z
      .strictObject({
        refuse: z.string().min(1).max(1_024).describe("What to do at the sender, in a sentence."),
      })
      .describe(
        "Not at all: they are quarantined as `invalid_body`, with what to do about it as the detail.",
      ),
  ],
  { error: 'must be "fields", {"field": …} or {"refuse": …} with a text' },
);

export type FormReading = z.output<typeof formReadingSchema>;
